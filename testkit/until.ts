import { setTimeout as sleep } from 'node:timers/promises';

type Check<T> = () => Promise<T> | T;
type Found<T> = T | null | undefined | false;

interface Limits {
  readonly timeoutMs?: number;
  readonly everyMs?: number;
}

/**
 * Calls `check` until its result is neither null nor false, and returns the result. After the timeout, throws an error that names `what`.
 */
export async function until(check: Check<boolean>, what: string, limits?: Limits): Promise<void>;
export async function until<T extends object | string | number>(
  check: Check<Found<T>>,
  what: string,
  limits?: Limits,
): Promise<T>;
export async function until(
  check: Check<unknown>,
  what: string,
  { timeoutMs = 120_000, everyMs = 10 }: Limits = {},
): Promise<unknown> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const result = await check();
    if (result !== null && result !== undefined && result !== false) return result;
    if (Date.now() >= deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(everyMs);
  }
}
