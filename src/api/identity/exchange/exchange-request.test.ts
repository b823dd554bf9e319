import { expect, test } from '@jest/globals';
import { ExchangeError } from './exchange-errors.ts';
import { exchangeGrant, parseExchangeRequest } from './exchange-request.ts';

const members = {
  grant_type: exchangeGrant,
  subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
  subject_token: 'x.y.z',
  audience: 'urn:pulumi:org:acme',
  expiration: 60,
};
const parse = (body: object) => parseExchangeRequest(Buffer.from(JSON.stringify(body)), 'application/json');

test('of JSON, members of other names are ignored, as they are of a form (RFC 6749, 3.2)', () => {
  const more = { debug: true, scopes: [], client: { id: 'x' }, nothing: null };
  expect(parse({ ...more, ...members })).toEqual(parse(members));
});

test.each(Object.keys({ ...members, scope: '', requested_token_type: '' }))('%s must be text', (name) => {
  for (const value of [true, [], {}]) expect(() => parse({ ...members, [name]: value })).toThrow(ExchangeError);
});
