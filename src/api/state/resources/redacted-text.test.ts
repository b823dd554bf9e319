import { expect, test } from '@jest/globals';
import { redactedText } from './redacted-json.ts';

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
