import type { AppContext } from '../../shared/context.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';
import { createProjectDayRepository } from './project-day-repository.ts';

const changesAtOnce = 5_000;
/** Few, because each day reads a row of every stack of its project. */
const lookupsAtOnce = 5;

/** Adds the changes of ended updates, and of added or removed stacks, to the sums of projects. Returns the number of changes. */
export async function sumProjectDays({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const days = createProjectDayRepository(db);
  let all = 0;
  for (const addSome of [days.addChanges, days.addDeliveryChanges, days.addStackCounts])
    all += await untilNoneLeft(changesAtOnce, signal, addSome);
  await untilNoneLeft(lookupsAtOnce, signal, days.findLongest);
  return all;
}
