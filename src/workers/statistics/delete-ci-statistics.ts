import type { AppContext } from '../../shared/context.ts';
import { createRefusedRunRepository } from '../../shared/updates/refused-run-repository.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';
import { createProjectDayRepository } from './project-day-repository.ts';

/** Pages show the last 90 days. */
const keptDays = 100;
const rowsAtOnce = 5_000;

export async function deleteOldCiStatistics({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const refused = createRefusedRunRepository(db);
  const projects = createProjectDayRepository(db);
  let all = 0;
  const each = [refused.deleteOld, refused.deleteOldDays, projects.deleteOld, projects.deleteOldDeliveries];
  for (const deleteSome of each) all += await untilNoneLeft(rowsAtOnce, signal, (limit) => deleteSome(keptDays, limit));
  return all;
}
