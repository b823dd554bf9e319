import { expect, test } from '@jest/globals';
import { redactedDigest, redactedJsonInSlices, redactedText } from './redacted-json.ts';

const secret = (ciphertext: string) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext,
});

test('a text of several MiB is redacted in several time slices', async () => {
  const textOf = (ciphertext: string): string =>
    JSON.stringify(Array.from({ length: 20 }, () => [secret(ciphertext), 'x'.repeat(200_000)]));
  let slices = 0;
  let isDone = false;
  const count = (): void => {
    slices++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const redacted = await redactedText(Buffer.from(textOf('QQ==')));
  isDone = true;
  expect(slices).toBeGreaterThanOrEqual(3);
  expect(redacted.toString('utf8') === textOf('[secret]')).toBe(true);
});

test('a digest identifies what is shown of a value, whatever its secrets are', async () => {
  const values = [
    { users: [{ name: 'ann', password: secret('QQ==') }] },
    { users: [{ name: 'bob', password: secret('QQ==') }] },
    { users: [secret('QQ=='), secret('QUE=')] },
    { users: [secret('QUE=')] },
    { users: [secret('QUI=')] },
    [],
  ].map((value) => Buffer.from(JSON.stringify(value)));
  const digests = await Promise.all(values.map((text) => redactedDigest(text, 1_000)));
  const shown = await Promise.all(values.map(async (text) => JSON.stringify(await redactedJsonInSlices(text, 1_000))));
  expect(new Set(digests).size).toBe(5);
  for (const [at, one] of shown.entries())
    for (const [other, text] of shown.entries()) expect(digests[at] === digests[other]).toBe(one === text);
  expect(await redactedDigest(null, 10)).toBe(null);
  expect(await redactedDigest(Buffer.alloc(100), 10)).toBe(null);
});
