import { describe, expect, test } from '@jest/globals';
import { parseKmsUrl } from './kms-url.ts';

const arn = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const google = 'projects/p/locations/eu/keyRings/r/cryptoKeys/K1';

test.each([
  ['awskms://alias/Main?region=eu-west-1', { kind: 'aws', key: 'alias/Main', region: 'eu-west-1', endpoint: null }],
  [`awskms:///${arn}`, { kind: 'aws', key: arn, region: 'eu-central-1', endpoint: null }],
  [
    'awskms://1234abcd?endpoint=https://kms.example.org',
    { kind: 'aws', key: '1234abcd', region: null, endpoint: 'https://kms.example.org' },
  ],
  [`gcpkms://${google}`, { kind: 'google', key: google, endpoint: 'https://cloudkms.googleapis.com' }],
  [
    'vault://vault.example.org/transit/main',
    { kind: 'vault', server: 'https://vault.example.org:8200', mount: 'transit', key: 'main', namespace: null },
  ],
  [
    'vault://127.0.0.1:8100/a/b/main?tls=off&namespace=team%2Fx',
    { kind: 'vault', server: 'http://127.0.0.1:8100', mount: 'a/b', key: 'main', namespace: 'team/x' },
  ],
])('%s', (url, expected) => {
  expect(parseKmsUrl(url)).toEqual(expected);
});

describe('a URL is refused, and not quoted, with', () => {
  test.each([
    ['no key', 'awskms://?region=eu-west-1', 'awskms://<id'],
    ['a part of a Google key', 'gcpkms://projects/p/locations/eu', 'gcpkms://projects/'],
    ['no key of Vault', 'vault://vault.example.org/transit', 'vault://<host>'],
    ['a password', 'vault://user:hunter2@vault.example.org/transit/main', 'must not contain a user or password'],
    ['an unknown parameter', 'awskms://alias/main?regoin=eu', 'unknown parameter "regoin"'],
    ['another machine without TLS', 'vault://vault.example.org/transit/main?tls=off', 'without TLS'],
    ['an endpoint without TLS', 'awskms://alias/main?endpoint=http://10.0.0.1', 'without TLS'],
    ['an endpoint that is none', 'awskms://alias/main?endpoint=kms', 'not valid'],
  ])('%s', (_name, url, problem) => {
    const text = parseKmsUrl(url);
    expect(text).toContain(problem);
    expect(text).not.toContain('hunter2');
  });
});
