import { expect, test } from '@jest/globals';
import { hashToken, mintToken, tokenForm } from './secret-token.ts';

test('a token is its prefix and 49 letters and digits, which secret scanners can look for', () => {
  const tokens = Array.from({ length: 200 }, () => mintToken('hf-'));
  expect(tokens.filter(({ token }) => !/^hf-[0-9A-Za-z]{49}$/.test(token))).toEqual([]);
  expect(tokens.filter(({ token }) => tokenForm(token, 'hf-') !== 'whole')).toEqual([]);
  expect(new Set(tokens.map(({ token }) => token)).size).toBe(200);
  for (const { token, hash } of tokens) expect(hashToken(token)).toEqual(hash);
});

test('the checksum never changes, because tokens outlive releases', () => {
  expect(tokenForm(`hf-${'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg'}213eFQ`, 'hf-')).toBe('whole');
});

test('one wrong character or two swapped ones are detected', () => {
  const { token } = mintToken('lease-');
  for (let at = 'lease-'.length; at < token.length; at++) {
    const wrong = `${token.slice(0, at)}${token[at] === 'a' ? 'b' : 'a'}${token.slice(at + 1)}`;
    expect(tokenForm(wrong, 'lease-')).toBe('faulty');
    const exchanged = `${token.slice(0, at)}${token[at + 1] ?? ''}${token[at]}${token.slice(at + 2)}`;
    expect(tokenForm(exchanged, 'lease-')).toBe(exchanged === token ? 'whole' : 'faulty');
  }
});

test('tokens of operators are distinguished from generated ones', () => {
  for (const text of ['at-least-16-characters-of-randomness', 'hf-', `hf-${'a'.repeat(48)}`, `hf-${'a'.repeat(50)}`])
    expect(tokenForm(text, 'hf-')).toBe('other');
  expect(tokenForm(mintToken('hf-').token, 'lease-')).toBe('other');
});
