import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';

export interface StartWait {
  /** 0 for a single attempt. */
  readonly waitMs: number;
  readonly logger: Logger;
}

export type Verdict = { readonly passing: string } | { readonly final: string };

export interface NeededPart<T> {
  /** E.g. `Redis at cache:6379 (HOLDFAST_REDIS_URL)`. */
  readonly name: string;
  /** Calls `reached` when work begins: only the wait has a limit. */
  readonly attempt: (reached: () => void) => Promise<T>;
  /** Null for an error that does not come from the dependency. It is rethrown unchanged. */
  readonly judge: (error: unknown) => Verdict | null;
}

/** A dependency is unavailable or rejects this process. */
export class PartUnavailableError extends OperatorError {
  override readonly name = 'PartUnavailableError';
}

const pauseMs = 250;

/**
 * Containers start in any order, and a database may have to recover. Logs the reason for the wait whenever it changes. Throws
 * PartUnavailableError on timeout or if waiting does not help.
 */
export async function untilAvailable<T>(part: NeededPart<T>, { waitMs, logger }: StartWait): Promise<T> {
  let waitedMs = 0;
  let waitsSince: number | null = performance.now();
  const endWait = (): void => {
    if (waitsSince !== null) waitedMs += performance.now() - waitsSince;
    waitsSince = null;
  };
  let loggedReason: string | null = null;
  for (;;) {
    try {
      const result = await part.attempt(endWait);
      if (loggedReason !== null) logger.info({ part: part.name }, 'available now');
      return result;
    } catch (error) {
      const verdict = part.judge(error);
      if (verdict === null) throw error;
      if ('final' in verdict)
        throw new PartUnavailableError(`${part.name} cannot be used: ${verdict.final}`, { cause: error });
      endWait();
      const leftMs = waitMs - waitedMs;
      if (leftMs <= 0) {
        const patience = waitMs > 0 ? `; gave up after ${waitMs / 1000} s` : '';
        throw new PartUnavailableError(`${part.name} is not available: ${verdict.passing}${patience}`, {
          cause: error,
        });
      }
      if (verdict.passing !== loggedReason) logger.warn({ part: part.name, reason: verdict.passing }, 'waiting');
      loggedReason = verdict.passing;
      waitsSince = performance.now();
      await sleep(Math.min(pauseMs, leftMs));
    }
  }
}
