import { setTimeout as sleep } from 'node:timers/promises';
import { isOutage } from './sqlstate.ts';

const retryMs = 500;

/** Repeats reads while the database is unavailable. Rejects with the last error. */
export async function throughOutage<Result>(read: () => Promise<Result>, maxMs: number): Promise<Result> {
  const until = performance.now() + maxMs;
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (!isOutage(error) || performance.now() >= until) throw error;
    }
    await sleep(retryMs);
  }
}
