import type { AppContext } from '../../shared/context.ts';
import { createProjectDayRepository } from './project-day-repository.ts';

const changesAtOnce = 5_000;
/** Few: each day reads a row of every stack of its project. */
const lookupsAtOnce = 5;

/** Adds to the sums of projects what ended updates, and stacks that came or left, have changed. Returns how many changes. */
export async function sumProjectDays({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const days = createProjectDayRepository(db);
  let all = 0;
  for (const addSome of [days.addChanges, days.addDeliveryChanges, days.addStackCounts])
    for (let count = changesAtOnce; count === changesAtOnce && !signal.aborted; all += count)
      count = await addSome(changesAtOnce);
  for (let count = lookupsAtOnce; count === lookupsAtOnce && !signal.aborted; )
    count = await days.findLongest(lookupsAtOnce);
  return all;
}
