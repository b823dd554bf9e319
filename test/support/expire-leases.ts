import type { AppContext } from '../../src/shared/context.ts';
import { compactEndedUpdates, deleteKeptJournals, endExpiredUpdates } from '../../src/workers/updates/expire-leases.ts';

/** The three scheduled tasks that end updates and clear up their journals. Returns how many updates it ended. */
export async function expireLeases(context: AppContext): Promise<number> {
  const ended = await endExpiredUpdates(context);
  await compactEndedUpdates(context);
  await deleteKeptJournals(context);
  return ended;
}
