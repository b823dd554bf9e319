import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { describeWeakToken, isPlaceholder, isWeakKey } from './weak-secrets.ts';

test.each([
  'at-least-16-characters-of-randomness',
  'Another-Long-Random-String',
  'aaaaaaaaaaaaaaaa',
  '0000000000000000000000000000',
  'abababababababab',
  'abcdabcdabcdabcd',
  'correct-correct-correct-',
  '0123456789012345',
  'abcdefghijklmnopqrstuvwxyz',
  '9876543210987654',
  'change-me-please-now',
  'CHANGEME12345678',
  'replace-with-a-token',
  'your-token-goes-here',
  '<put a token here>',
  'placeholder-placeholder',
])('%s is weak', (token) => {
  expect(describeWeakToken(token)).not.toBeNull();
});

// With 64 bits, one run in thirty would find digits that look like a sequence.
test('random tokens of 96 bits and more are not weak in any of the usual encodings', () => {
  for (let round = 0; round < 2_000; round++) {
    for (const token of [
      randomBytes(12).toString('hex'),
      randomBytes(24).toString('hex'),
      randomBytes(12).toString('base64'),
      `hf-${randomBytes(32).toString('base64url')}`,
      BigInt(`0x${randomBytes(16).toString('hex')}`)
        .toString()
        .padStart(39, '7'),
    ])
      expect([token, describeWeakToken(token)]).toEqual([token, null]);
    expect(isWeakKey(randomBytes(32))).toBe(false);
  }
});

test('a key that is not random is weak', () => {
  for (const key of [Buffer.alloc(32), Buffer.alloc(32, 'k'), Buffer.alloc(32, 'abcdefgh')])
    expect(isWeakKey(key)).toBe(true);
});

test('a password is a placeholder only if it looks like one', () => {
  for (const text of ['changeme', 'change-me', 'replace-this', '<password>', 'example-password'])
    expect(isPlaceholder(text)).toBe(true);
  for (const text of ['password', 'holdfast', 'exchange', 'replaced', '']) expect(isPlaceholder(text)).toBe(false);
});
