import type { ScheduledTaskRepository } from '../../shared/platform/maintenance/scheduled-task-repository.ts';

const watchTask = 'watch-clock';

/** After more time than this between two looks at the clock of Postgres, either nothing has run, or the clock is wrong. */
const maxGapMs = 24 * 3_600_000;
/** Enough for NTP to correct a clock. Shorter than the pause after which a task that failed runs again. */
const holdMs = 8 * 60_000;

/** What was seen of the clock of Postgres, in ms since 1970. */
export interface ClockLook {
  readonly seenAt: number;
  /** Until then, no task deletes by age. */
  readonly heldUntil: number;
}

/** What to note at `now`, after the look `before`. Times of the future are from before the clock was set back. */
export function lookAfter(before: ClockLook | null, now: number): ClockLook {
  if (before !== null && hasJumped(before, now)) return { seenAt: now, heldUntil: now + holdMs };
  const isHeld = before !== null && before.heldUntil <= now + holdMs;
  return { seenAt: now, heldUntil: isHeld ? before.heldUntil : 0 };
}

/** Whether tasks may delete by age at `now`. */
export function isTrusted(look: ClockLook | null, now: number): boolean {
  if (look === null) return true;
  return !hasJumped(look, now) && (look.heldUntil <= now || look.heldUntil > now + holdMs);
}

function hasJumped({ seenAt }: ClockLook, now: number): boolean {
  return now - seenAt > maxGapMs;
}

/** Creates the task that looks at the clock of Postgres. */
export function watchClock(runs: ScheduledTaskRepository): { readonly name: string; run(): Promise<void> } {
  return {
    name: watchTask,
    run: async () => {
      const look = lookAfter(await findLook(runs), await runs.readClock());
      await runs.saveResult(watchTask, JSON.stringify(look));
    },
  };
}

/** Throws if the clock of Postgres may be far ahead. */
export async function assertClock(runs: ScheduledTaskRepository): Promise<void> {
  // In this order: a jump in between is seen.
  const look = await findLook(runs);
  if (!isTrusted(look, await runs.readClock()))
    throw new Error(
      `Nothing is deleted by age for ${holdMs / 60_000} minutes: by the clock of Postgres, nothing has run for more than a day`,
    );
}

async function findLook(runs: ScheduledTaskRepository): Promise<ClockLook | null> {
  const result = await runs.findResult(watchTask);
  return result === null ? null : (JSON.parse(result) as ClockLook);
}
