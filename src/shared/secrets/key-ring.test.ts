import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { KeyRing, MasterKeyError } from './key-ring.ts';
import { parseMasterKeys } from './master-key-list.ts';

const ringOf = (id: string) => new KeyRing(new Map([[id, randomBytes(32)]]));
const key = (bytes = 32): string => randomBytes(bytes).toString('base64');

function errorMessageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(MasterKeyError);
    return (error as Error).message;
  }
  throw new Error('Expected a MasterKeyError');
}

describe('a list of master keys', () => {
  const good = key();
  test.each([
    ['a key without an id', good, 'Master key 1 in HOLDFAST_MASTER_KEYS is not of the form id:base64 or id:URL'],
    ['a second one without an id', `k1:${good},${key()}`, 'Master key 2 in HOLDFAST_MASTER_KEYS'],
    ['nothing', '', 'Master key 1 in HOLDFAST_MASTER_KEYS'],
    ['a short key', `k1:${key(16)}`, '"k1" has 16 bytes; it must be 32'],
    ['a long key', `k1:${good},k2:${key(33)}`, '"k2" has 33 bytes'],
    ['letters that are not base64', `k1:${good.slice(0, 5)}!!${good.slice(5)}`, '"k1" is not valid base64'],
    ['the URL of a KMS without an id', 'vault://h/transit/k', 'Master key 1 in HOLDFAST_MASTER_KEYS'],
    ['a URL of another kind', 'k1:azurekms://hhhhh', '"k1" has'],
    ['a URL that is not complete', 'k1:vault://h', '"k1": the key must be vault://'],
    ['an id twice', `k1:${good},k1:${key()}`, '"k1" occurs twice in HOLDFAST_MASTER_KEYS'],
  ])('with %s is rejected without showing a key', (_name, text, expected) => {
    const message = errorMessageOf(() => parseMasterKeys(text));
    expect(message).toContain(expected);
    for (const part of text.split(/[,:]/)) if (part.length > 5) expect(message).not.toContain(part.slice(0, -1));
  });
});

test('a master key may begin with any bytes', () => {
  // In base64, these begin with what a URL has after its scheme.
  const bytes = Buffer.alloc(32, 0xff);
  expect(parseMasterKeys(`k1:${bytes.toString('base64')}`)).toEqual([{ id: 'k1', bytes, kms: null }]);
});

test('a data key is unwrapped only by the same master key and for the same stack', () => {
  const [ring, other] = [ringOf('k1'), ringOf('k1')];
  const dataKey = randomBytes(32);
  const { masterKeyId, wrappedKey } = ring.wrap(dataKey, 'a-stack');
  expect(ring.unwrap(masterKeyId, wrappedKey, 'a-stack')).toEqual(dataKey);
  expect(errorMessageOf(() => other.unwrap(masterKeyId, wrappedKey, 'a-stack'))).toContain('"k1" does not unwrap');
  expect(errorMessageOf(() => ring.unwrap(masterKeyId, wrappedKey, 'other'))).toContain('of stack other');
  expect(errorMessageOf(() => ring.unwrap(masterKeyId, wrappedKey, null))).toContain('of documents');
  expect(errorMessageOf(() => ring.unwrap('k2', wrappedKey, 'a-stack'))).toContain(
    '"k2" is not in HOLDFAST_MASTER_KEYS',
  );
});

test('a canary is recognized by the same key under the same id only', () => {
  const [ring, other] = [ringOf('k1'), ringOf('k1')];
  const canary = ring.makeCanary('k1');
  expect([ring.matchesCanary('k1', canary), other.matchesCanary('k1', canary)]).toEqual([true, false]);
  expect(ring.matchesCanary('k1', canary.subarray(1))).toBe(false);
});
