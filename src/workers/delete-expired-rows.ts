import type { AppContext } from '../shared/context.ts';
import { createTokenRepository } from '../shared/identity/token-repository.ts';
import { createApprovalRepository } from '../shared/updates/approvals/approval-repository.ts';
import { createUpdateQueueRepository } from '../shared/updates/update-queue-repository.ts';
import { untilNoneLeft } from './platform/until-none-left.ts';
import { createAbandonedPackRepository } from './policies/abandoned-pack-repository.ts';
import { createEmptyProjectRepository } from './stacks/empty-project-repository.ts';

/** Personal tokens and those of CI runs are kept for this long after their end. */
const tokenDays = 30;
/** Tokens of teams and organizations, whose names the history shows. */
const namedTokenDays = 400;
const approvalDays = 100;
const rowsAtOnce = 500;

type Parts = Pick<AppContext, 'db'>;

/** Deletes tokens that were revoked, or expired, long ago. The audit log keeps their names. */
export async function deleteEndedTokens({ db }: Parts, signal: AbortSignal): Promise<number> {
  const tokens = createTokenRepository(db);
  const days = { ofOthers: tokenDays, named: namedTokenDays };
  return untilNoneLeft(rowsAtOnce, signal, (limit) => tokens.deleteEnded(days, limit));
}

/** Deletes approvals that expired, or requests that were never approved, long ago. */
export async function deleteOldApprovals({ db }: Parts, signal: AbortSignal): Promise<number> {
  const approvals = createApprovalRepository(db);
  return untilNoneLeft(rowsAtOnce, signal, (limit) => approvals.deleteOld(approvalDays, limit));
}

/** Deletes abandoned entries in the queues of stacks. Needed for queues in which no call waits any more. */
export async function deleteLostWaiters({ db }: Parts): Promise<void> {
  await createUpdateQueueRepository(db).removeGone();
}

/** Deletes projects without stacks. */
export async function deleteEmptyProjects({ db }: Parts, signal: AbortSignal): Promise<number> {
  let deleted = 0;
  let looked = rowsAtOnce;
  while (looked === rowsAtOnce && !signal.aborted)
    deleted += await db.inTransaction(async (tx) => {
      const projects = createEmptyProjectRepository(tx);
      const ids = await projects.lock(rowsAtOnce);
      looked = ids.length;
      return projects.delete(ids);
    });
  return deleted;
}

/** Deletes versions of policy packs that were not published in time, and packs without any other version. */
export async function deleteAbandonedPacks({ db }: Parts, signal: AbortSignal): Promise<number> {
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
