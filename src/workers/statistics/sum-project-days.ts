import type { AppContext } from '../../shared/context.ts';
import { inBatches } from '../platform/in-batches.ts';
import { createProjectDayRepository } from './project-day-repository.ts';

const changesAtOnce = 5_000;
/** Few: each day reads a row of every stack of its project. */
const lookupsAtOnce = 5;

/** Adds to the sums of projects what ended updates, and stacks that came or left, have changed. Returns how many changes. */
export async function sumProjectDays({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const days = createProjectDayRepository(db);
  let all = 0;
  for (const addSome of [days.addChanges, days.addDeliveryChanges, days.addStackCounts])
    all += await inBatches(changesAtOnce, signal, addSome);
  await inBatches(lookupsAtOnce, signal, days.findLongest);
  return all;
}
