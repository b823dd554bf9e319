import { expect, test } from '@jest/globals';
import { listSecrets } from './secret-values.ts';

const key = '4dabf18193072939515e22adb298388d';
const secret = (ciphertext: unknown) => ({ [key]: '1b47061264138c4ac30d75fd1eb44270', ciphertext });

function found(value: unknown): unknown[] {
  const text = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  return listSecrets(text).map(({ ciphertext, end, start }) => {
    expect(JSON.parse(text.toString('utf8', start, end))).toHaveProperty(key);
    return ciphertext;
  });
}

test.each<[string, unknown, unknown[]]>([
  ['no secret', { a: [1, 'x', { ciphertext: 'QQ==' }] }, []],
  ['the value itself', secret('QQ=='), ['QQ==']],
  ['secrets at any depth', { a: [secret('QQ=='), { b: secret('Qg==') }] }, ['QQ==', 'Qg==']],
  ['a plaintext', { a: { [key]: '1b47061264138c4ac30d75fd1eb44270', plaintext: '"x"' } }, [null]],
  ['a ciphertext that is no string', secret(7), [null]],
  ['a secret within a secret', { ...secret('QQ=='), more: secret('Qg==') }, ['QQ==']],
  ['an asset', { [key]: 'c44067f5952c0a294b673a41bacd8c17', ciphertext: 'QQ==' }, []],
  ['the signature as a member of a list', [key, '1b47061264138c4ac30d75fd1eb44270'], []],
  ['escapes', `{"\\u0034dabf18193072939515e22adb298388d":"\\u0031b47061264138c4ac30d75fd1eb44270"}`, [null]],
  ['a signature after the ciphertext', `{"ciphertext":"QQ==","${key}":"1b47061264138c4ac30d75fd1eb44270"}`, ['QQ==']],
  ['an object after a secret', [secret('QQ=='), { ciphertext: 'Qg==' }], ['QQ==']],
])('%s', (_name, value, expected) => {
  expect(found(value)).toEqual(expected);
});
