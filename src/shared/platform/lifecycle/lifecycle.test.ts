import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { createLogger } from '../logger/logger.ts';
import { closeOnSignal, Lifecycle, type ShutdownLimits } from './lifecycle.ts';

interface Line {
  readonly msg: string;
  readonly part: string;
}

function lifecycle(limits: ShutdownLimits): { parts: Lifecycle; closed: string[]; gaveUpOn: () => string[] } {
  const lines: Line[] = [];
  const logger = createLogger({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line) as Line) });
  const gaveUpOn = (): string[] => lines.filter(({ msg }) => msg.endsWith('gave up waiting')).map(({ part }) => part);
  return { parts: new Lifecycle(logger, limits), closed: [], gaveUpOn };
}

const stuck = (): Promise<void> => new Promise(() => {});
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Closes the parts. Returns how long that took, by a clock that goes on by itself. */
async function millisecondsToClose(parts: Lifecycle): Promise<number> {
  const start = performance.now();
  let tookMs: number | undefined;
  void parts.close().then(() => {
    tookMs = performance.now() - start;
  });
  while (tookMs === undefined) await jest.advanceTimersByTimeAsync(1);
  return tookMs;
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

test('closes phase by phase, and within a phase the last part first', async () => {
  const { parts, closed } = lifecycle({ drainMs: 0, shutdownMs: 60_000 });
  for (const [phase, name] of [
    ['stores', 'database'],
    ['stores', 'user of the database'],
    ['work', 'jobs'],
    ['drain', 'readiness'],
    ['processes', 'postgres'],
    ['intake', 'http'],
  ] as const)
    parts.onClose(phase, name, async () => void closed.push(name));
  await Promise.all([parts.close(), parts.close()]);
  expect(closed).toEqual(['readiness', 'http', 'jobs', 'user of the database', 'database', 'postgres']);
});

test('any number of stuck parts in all phases end by one deadline, and every other part is closed', async () => {
  const limits = { drainMs: 200, shutdownMs: 1_000 };
  const { parts, closed, gaveUpOn } = lifecycle(limits);
  for (const phase of ['intake', 'work', 'queues', 'stores', 'processes'] as const) {
    parts.onClose(phase, `stuck in ${phase}`, stuck);
    parts.onClose(phase, `also stuck in ${phase}`, stuck);
    parts.onClose(phase, phase, async () => {
      await sleep(1);
      closed.push(phase);
    });
  }
  parts.onClose('drain', 'readiness', () => sleep(limits.drainMs));
  const tookMs = await millisecondsToClose(parts);
  expect(gaveUpOn()).toHaveLength(10);
  expect(closed).toEqual(['intake', 'work', 'queues', 'stores', 'processes']);
  expect(tookMs).toBeGreaterThan(1_190);
  // A limit for each part would take twelve seconds.
  expect(tookMs).toBeLessThan(1_210);
});

test('a part that is slow has three quarters of the time, whatever comes after it', async () => {
  const { parts, closed, gaveUpOn } = lifecycle({ drainMs: 0, shutdownMs: 2_000 });
  for (let index = 0; index < 20; index++) parts.onClose('stores', `part ${index}`, async () => {});
  parts.onClose('work', 'jobs', async () => {
    await sleep(1_200);
    closed.push('jobs');
  });
  expect(await millisecondsToClose(parts)).toBeLessThan(1_210);
  expect(closed).toEqual(['jobs']);
  expect(gaveUpOn()).toEqual([]);
});

test('the drain is not shortened by a time limit below it', async () => {
  const { parts, closed } = lifecycle({ drainMs: 600, shutdownMs: 100 });
  parts.onClose('drain', 'readiness', async () => {
    await sleep(600);
    closed.push('readiness');
  });
  parts.onClose('stores', 'database', async () => void closed.push('database'));
  await millisecondsToClose(parts);
  expect(closed).toEqual(['readiness', 'database']);
});

test('a part that fails to close does not keep the others open', async () => {
  const { parts, closed } = lifecycle({ drainMs: 0, shutdownMs: 60_000 });
  parts.onClose('work', 'jobs', async () => {
    throw new Error('no');
  });
  parts.onClose('stores', 'database', async () => void closed.push('database'));
  await parts.close();
  expect(closed).toEqual(['database']);
});

describe('signals', () => {
  function process(): { parts: Lifecycle; messages: string[]; send: (signal: string, atMs: number) => void } {
    const messages: string[] = [];
    const logger = createLogger(
      { level: 'info' },
      { write: (line) => void messages.push((JSON.parse(line) as Line).msg) },
    );
    const parts = new Lifecycle(logger, { drainMs: 0, shutdownMs: 60_000 });
    let nowMs = 0;
    const target = Object.assign(new EventEmitter(), { exit: (code: number) => void messages.push(`exit ${code}`) });
    closeOnSignal(parts, logger, { now: () => nowMs, target });
    const send = (signal: string, atMs: number): void => {
      nowMs = atMs;
      target.emit(signal, signal);
    };
    return { parts, messages, send };
  }

  test('Ctrl-C that the terminal, npm and another parent send closes the parts', async () => {
    const { parts, messages, send } = process();
    for (const atMs of [0, 1, 400]) send('SIGINT', atMs);
    send('SIGTERM', 450);
    await parts.close();
    expect(messages).toEqual(['shutting down', 'stopped', 'exit 0']);
  });

  test.each([
    ['SIGINT', 500],
    ['SIGTERM', 500],
  ])('a second signal, %s after %s ms, exits at once', async (signal, atMs) => {
    const { parts, messages, send } = process();
    const { promise, resolve } = Promise.withResolvers<void>();
    parts.onClose('work', 'jobs', () => promise);
    send('SIGINT', 0);
    send(signal, atMs);
    expect(messages).toEqual(['shutting down', 'second signal: exiting at once', 'exit 1']);
    resolve();
    await parts.close();
  });
});
