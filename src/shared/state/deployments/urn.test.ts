import { describe, expect, test } from '@jest/globals';
import { formatUrn, parseUrn, providerUrn, renameUrn } from './urn.ts';

const urn = 'urn:pulumi:dev::shop::my:index:Site$aws:s3/bucket:Bucket::assets';

describe('parseUrn', () => {
  test('splits a URN into parts, and formatUrn joins them again', () => {
    const parts = { stack: 'dev', project: 'shop', type: 'my:index:Site$aws:s3/bucket:Bucket', name: 'assets' };
    expect(parseUrn(urn)).toEqual(parts);
    expect(formatUrn(parts)).toBe(urn);
  });

  test('keeps :: in a name, including the id of a provider reference', () => {
    const reference = 'urn:pulumi:dev::shop::pulumi:providers:aws::west::1b9d';
    expect(parseUrn(reference)?.name).toBe('west::1b9d');
    expect(parseUrn(providerUrn(reference))?.name).toBe('west');
  });

  test.each(['', 'dev', 'urn:pulumi:dev', 'urn:pulumi:dev::shop', 'urn:pulumi:dev::shop::type', `x${urn}`])(
    'returns null for %j',
    (text) => {
      expect(parseUrn(text)).toBeNull();
    },
  );
});

test('renameUrn does not change text that is not a URN', () => {
  const ref = { organization: 'acme', project: 'shop', stack: 'dev' };
  const change = { from: ref, to: { ...ref, stack: 'test' } };
  expect(renameUrn(urn, change)).toBe(urn.replace(':dev:', ':test:'));
  expect(renameUrn('dev', change)).toBe('dev');
});
