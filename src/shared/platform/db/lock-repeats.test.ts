import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { runFirst } from './connection-gate.ts';
import { LockRepeats, lockWaitMs } from './lock-repeats.ts';

const lockTimeout = () => Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });

/** Work that gets no lock the first time, and then waits for `until`. */
function failingOnce<T>(until: Promise<T>): () => Promise<T> {
  let attempts = 0;
  return async () => {
    if (attempts++ === 0) throw lockTimeout();
    return until;
  };
}

describe('LockRepeats', () => {
  it('repeats priority work while other work uses all places for repeats', async () => {
    const repeats = new LockRepeats(4, 60_000);
    const locked = Promise.withResolvers<void>();
    const others = Array.from({ length: 10 }, () => repeats.run(failingOnce(locked.promise)));
    await expect(runFirst(() => repeats.run(failingOnce(Promise.resolve('renewed'))))).resolves.toBe('renewed');
    expect(repeats.waiting).toBe(9);
    locked.resolve();
    await Promise.all(others);
    expect(repeats.waiting).toBe(0);
  });

  it('repeats a caller before callers with more attempts, whose lock is held for long', async () => {
    const repeats = new LockRepeats(4, 60_000);
    let [attempts, isLocked] = [0, true];
    const stuck = Array.from({ length: 20 }, () =>
      repeats.run(async () => {
        await setImmediate();
        attempts++;
        if (isLocked) throw lockTimeout();
      }),
    );
    while (attempts < 100) await setImmediate();
    const before = attempts;
    await repeats.run(failingOnce(Promise.resolve()));
    expect(attempts - before).toBeLessThan(5);
    isLocked = false;
    await Promise.all(stuck);
  });

  it('throws the lock timeout if no place for a repeat becomes free', async () => {
    const repeats = new LockRepeats(4, lockWaitMs + 100);
    const locked = Promise.withResolvers<void>();
    const other = repeats.run(failingOnce(locked.promise));
    await expect(repeats.run(failingOnce(Promise.resolve()))).rejects.toMatchObject({ code: '55P03' });
    locked.resolve();
    await other;
  });

  it('counts the time from the first lock timeout on', async () => {
    const repeats = new LockRepeats(4, 60_000);
    let [attempts, now] = [0, 0];
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now);
    const work = async () => {
      attempts++;
      // Longer than repeats may take.
      if (attempts === 1) now += 100_000;
      if (attempts < 3) throw lockTimeout();
      return attempts;
    };
    try {
      await expect(repeats.run(work)).resolves.toBe(3);
    } finally {
      clock.mockRestore();
    }
  });
});
