import type { BackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';

const watchTask = 'watch-clock';

/** After a longer gap between two readings of Postgres's clock, either nothing has run, or the clock is wrong. */
const maxGapMs = 24 * 3_600_000;
/** Long enough for NTP to correct a clock. */
const holdMs = 8 * 60_000;

/** The times are in ms since 1970, by Postgres's clock. */
export interface ClockLook {
  readonly seenAt: number;
  /** No task deletes by age before this time. */
  readonly heldUntil: number;
}

/** The result to save at `now`. Times in the future are from before the clock was set back. */
export function lookAfter(before: ClockLook | null, now: number): ClockLook {
  if (before !== null && hasJumped(before, now)) return { seenAt: now, heldUntil: now + holdMs };
  const isHeld = before !== null && before.heldUntil <= now + holdMs;
  return { seenAt: now, heldUntil: isHeld ? before.heldUntil : 0 };
}

export function isTrusted(look: ClockLook | null, now: number): boolean {
  if (look === null) return true;
  return !hasJumped(look, now) && (look.heldUntil <= now || look.heldUntil > now + holdMs);
}

function hasJumped({ seenAt }: ClockLook, now: number): boolean {
  return now - seenAt > maxGapMs;
}

export function watchClock(
  runs: BackgroundTaskRepository,
  logger: { warn(details: object, message: string): void },
): { readonly name: string; run(): Promise<void> } {
  return {
    name: watchTask,
    run: async () => {
      const { look: before, now } = await readLook(runs);
      const look = lookAfter(before, now);
      if (look.heldUntil > now && before?.heldUntil !== look.heldUntil) {
        logger.warn(
          { seenAt: new Date(before?.seenAt ?? now), now: new Date(now) },
          `by the clock of Postgres, nothing has run for more than a day: nothing is deleted by age for ${holdMs / 60_000} minutes`,
        );
      }
      await runs.saveResult(watchTask, JSON.stringify(look));
    },
  };
}

/**
 * False if Postgres's clock may be far ahead, or in a restored database before it has taken over: it may have been restored for data that
 * has become old since.
 */
export async function mayDeleteByAge(runs: BackgroundTaskRepository): Promise<boolean> {
  const { hasTakenOver, look, now } = await readLook(runs);
  return hasTakenOver && isTrusted(look, now);
}

async function readLook(
  runs: BackgroundTaskRepository,
): Promise<{ look: ClockLook | null; now: number; hasTakenOver: boolean }> {
  const { result, ...found } = await runs.findResultNow(watchTask);
  return { ...found, look: result === null ? null : (JSON.parse(result) as ClockLook) };
}
