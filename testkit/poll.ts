import { setTimeout as sleep } from 'node:timers/promises';

/** Asks until the answer is neither null nor false, and throws naming `what` once the deadline has passed. */
export async function pollUntil<T>(
  what: string,
  ask: () => Promise<T | null | false> | T | null | false,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const { timeoutMs = 60_000, everyMs = 25 } = options;
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== false) return answer;
    if (Date.now() >= deadline) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(everyMs);
  }
}
