import type { AppContext } from '../../src/shared/context.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { compactEndedUpdates, deleteKeptJournals } from '../../src/workers/state/compact-journals.ts';
import { endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';
import { until } from './until.ts';

/** Runs the three background tasks that end updates and clear up their journals. Returns how many updates were ended. */
export async function expireLeases(context: AppContext): Promise<number> {
  const ended = await endExpiredUpdates(context);
  await compactEndedUpdates(context);
  // The task leaves a journal to the job that has it.
  const compacted = sql.nothing`
    select 1 from journals where ended_at is not null and compaction_claimed_until > clock_timestamp()`;
  await until(async () => (await context.db.any(compacted)).length === 0, 'compactions of ended updates have ended');
  await deleteKeptJournals(context);
  return ended;
}
