import { Writable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { printLines } from './print-lines.ts';

async function* numbered(count: number): AsyncGenerator<string> {
  for (let at = 0; at < count; at++) yield `${at}\n`;
}

test('prints all lines, and leaves the stream open and without listeners', async () => {
  let printed = '';
  const out = new Writable({
    highWaterMark: 8,
    write: (chunk, _encoding, done) => {
      printed += chunk;
      setImmediate(done);
    },
  });
  for (let round = 0; round < 3; round++) expect(await printLines(numbered(100), out)).toBe(true);
  expect(printed.split('\n')).toHaveLength(301);
  expect(out.listenerCount('error')).toBe(0);
  expect(out.writable).toBe(true);
});

test('ends when the reader closes the pipe, and reads no more lines', async () => {
  const closed = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  const out = new Writable({ write: (_chunk, _encoding, done) => done(closed) });
  let read = 0;
  const lines = async function* () {
    for await (const line of numbered(100_000)) {
      read += 1;
      yield line;
    }
  };
  expect(await printLines(lines(), out)).toBe(false);
  expect(read).toBeLessThan(100_000);
});

test('passes on any other error', async () => {
  const out = new Writable({ write: (_chunk, _encoding, done) => done(new Error('disk full')) });
  await expect(printLines(numbered(1), out)).rejects.toThrow('disk full');
});
