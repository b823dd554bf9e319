import type { AppContext } from '../../shared/context.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';
import { createAbandonedPackRepository } from './abandoned-pack-repository.ts';

const rowsAtOnce = 500;

/** Deletes versions of policy packs that were not published in time, and packs without any other version. */
export async function deleteAbandonedPacks({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const versions = createAbandonedPackRepository(db);
  const deleted = await untilNoneLeft(rowsAtOnce, signal, (limit) => versions.deleteVersions(limit));
  const packs = await untilNoneLeft(rowsAtOnce, signal, (limit) =>
    db.inTransaction(async (tx) => {
      const rows = createAbandonedPackRepository(tx);
      return rows.deletePacks(await rows.lockPacks(limit));
    }),
  );
  return deleted + packs;
}
