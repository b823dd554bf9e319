import { EventEmitter } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { onEndSignal } from './end-signals.ts';

function start() {
  const seen: string[] = [];
  let nowMs = 0;
  const target = Object.assign(new EventEmitter(), { exit: (code: number) => void seen.push(`exit ${code}`) });
  const forget = onEndSignal((signal) => void seen.push(signal), { now: () => nowMs, target });
  const send = (signal: string, atMs: number): void => {
    nowMs = atMs;
    target.emit(signal, signal);
  };
  return { seen, send, forget };
}

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
])('a second signal, %s, ends the process; signals of the first half second are the first one', (signal, code) => {
  const { seen, send } = start();
  for (const atMs of [0, 1, 499]) send('SIGINT', atMs);
  expect(seen).toEqual(['SIGINT']);
  send(signal, 500);
  expect(seen).toEqual(['SIGINT', `exit ${code}`]);
});

test('signals that are forgotten do nothing', () => {
  const { forget, seen, send } = start();
  forget();
  send('SIGTERM', 0);
  expect(seen).toEqual([]);
});

const root = path.join(import.meta.dirname, '../../../..');
/** The server of a demo gets each signal; the other ends commands that do not listen. */
const others = ['scripts/demo/server.ts', 'src/main.ts'];

test('nothing else listens to these signals, so that a second one always ends the process', () => {
  const files = globSync('{src,scripts}/**/*.ts', { cwd: root, exclude: ['src/**/*.test.ts', 'src/web/**'] });
  const listening = files.filter((file) =>
    /process\s*\.(on|once)\((signal|'SIG(HUP|INT|TERM)')/.test(readFileSync(path.join(root, file), 'utf8')),
  );
  expect(listening.toSorted()).toEqual(others);
});
