import { setTimeout as sleep } from 'node:timers/promises';

/** Calls `check` until the result is neither null nor false. Throws an error that names `what` after the timeout. */
export async function pollUntil<T>(
  what: string,
  check: () => Promise<T | null | false> | T | null | false,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const { timeoutMs = 120_000, everyMs = 25 } = options;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const result = await check();
    if (result !== null && result !== false) return result;
    if (Date.now() >= deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(everyMs);
  }
}
