import { PassThrough, Writable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { readPassword } from './read-password.ts';

function openOutput(): { readonly output: typeof process.stderr; readonly shown: () => string } {
  let shown = '';
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      shown += String(chunk);
      done();
    },
  });
  return { output: output as unknown as typeof process.stderr, shown: () => shown };
}

test('reads all input if it is not a terminal, without the last line break', async () => {
  const { output, shown } = openOutput();
  const input = new PassThrough();
  input.end('correct horse\r\n');
  expect(await readPassword(input, output)).toBe('correct horse');
  expect(shown()).toBe('');
});

test('prompts at a terminal, and does not echo input', async () => {
  const { output, shown } = openOutput();
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const password = readPassword(input, output);
  input.write('correct horsx\u007fe\n');
  expect(await password).toBe('correct horse');
  expect(shown()).toBe('New password: \n');
});

test('is empty when the terminal is closed', async () => {
  const { output } = openOutput();
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const password = readPassword(input, output);
  input.end();
  expect(await password).toBe('');
});
