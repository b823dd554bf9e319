import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../errors/errors.ts';
import type { Logger } from '../logger/logger.ts';

/** How long a process that starts waits for a part that is away, and where it says so. */
export interface StartWait {
  /** In milliseconds; 0: one attempt. */
  readonly waitMs: number;
  readonly logger: Logger;
}

/** What an error of a part means: it may pass, or it never will. */
export type Verdict = { readonly passing: string } | { readonly final: string };

/** Something that a process needs before it can serve. */
export interface NeededPart<T> {
  /** For sentences, as in `Redis at cache:6379 (HOLDFAST_REDIS_URL)`. */
  readonly name: string;
  readonly attempt: () => Promise<T>;
  /** null when the error is none of the part's; it is thrown as it is then. */
  readonly judge: (error: unknown) => Verdict | null;
}

/** A part that a process needs is away, or refuses it. */
export class PartUnavailableError extends OperatorError {
  override readonly name = 'PartUnavailableError';
}

const pauseMs = 250;

/**
 * Containers start in any order, and a database may have to recover: tries until the attempt succeeds, and says why it waits
 * whenever that changes. Throws PartUnavailableError when the wait is over or waiting does not help.
 */
export async function untilAvailable<T>(part: NeededPart<T>, { waitMs, logger }: StartWait): Promise<T> {
  const deadline = performance.now() + waitMs;
  let told: string | null = null;
  for (;;) {
    try {
      const result = await part.attempt();
      if (told !== null) logger.info({ part: part.name }, 'available now');
      return result;
    } catch (error) {
      const verdict = part.judge(error);
      if (verdict === null) throw error;
      if ('final' in verdict)
        throw new PartUnavailableError(`${part.name} cannot be used: ${verdict.final}`, { cause: error });
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) {
        const patience = waitMs > 0 ? `; gave up after ${waitMs / 1000} s` : '';
        throw new PartUnavailableError(`${part.name} is not available: ${verdict.passing}${patience}`, {
          cause: error,
        });
      }
      if (verdict.passing !== told) logger.warn({ part: part.name, reason: verdict.passing }, 'waiting');
      told = verdict.passing;
      await sleep(Math.min(pauseMs, leftMs));
    }
  }
}
