import { expect, test } from '@jest/globals';
import { sealedText } from './redacted-json.ts';

const secret = (ciphertext: string) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  ciphertext,
});

test('a text of several MiB is sealed in several turns of the event loop', async () => {
  const textOf = (ciphertext: string): string =>
    JSON.stringify(Array.from({ length: 20 }, () => [secret(ciphertext), 'x'.repeat(200_000)]));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const sealed = await sealedText(Buffer.from(textOf('QQ==')));
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(3);
  expect(sealed.toString('utf8') === textOf('[secret]')).toBe(true);
});
