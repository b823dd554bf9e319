import { createAuditChainRepository } from '../../shared/audit/audit-chain-repository.ts';
import { listHeads } from '../../shared/audit/verify-audit.ts';
import type { AppContext } from '../../shared/context.ts';
import { limitLockWait } from '../../shared/platform/db/limit-lock-wait.ts';
import { type DeletionParts, deletesPerLook, findDeletionBar, mayGoOnDeleting } from '../platform/store-deletions.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { createAuditExportRepository } from './audit-export-repository.ts';
import { createAuditRetentionRepository } from './audit-retention-repository.ts';

/** Partitions are added for the current month and this many months ahead. */
const monthsAhead = 3;
const batchesAtOnce = 5_000;
/** Maximum wait of DDL for a lock, in ms: statements that queue behind it wait, too. */
const ddlLockMs = 2_000;

/** Adds the partitions of the next months. Without them, events go to the default partition. */
export async function addAuditPartitions({ db }: Pick<AppContext, 'db'>): Promise<number> {
  const { months } = await createAuditRetentionRepository(db).readMonths(monthsAhead, 0);
  let added = 0;
  for (const month of months) {
    const isAdded = await db.inTransaction(async (tx) => {
      const auditMonths = createAuditRetentionRepository(tx);
      await limitLockWait(tx, ddlLockMs);
      return auditMonths.addPartition(month);
    });
    if (isAdded) added++;
  }
  return added;
}

/**
 * Drops the events of months that ended more than `audit.retentionDays` ago, once all of them are chained and, if exports are configured,
 * exported. If this database owns the blob store, also deletes the heads of the dropped batches. The chains remain verifiable from the last
 * dropped batch. Throws the error of a head after the others are done.
 */
export async function dropOldAudit(
  context: Pick<AppContext, 'config' | 'metrics'> & DeletionParts,
  signal?: AbortSignal,
): Promise<number> {
  const { blobs, config, db, logger, metrics } = context;
  const { isExported, receiverUrl, retentionDays } = config.audit;
  if (retentionDays === 0) return 0;
  const { keptFrom } = await createAuditRetentionRepository(db).readMonths(0, retentionDays);
  const dropped = await db.inTransaction(async (tx) => {
    const auditMonths = createAuditRetentionRepository(tx);
    const exports = createAuditExportRepository(tx);
    await limitLockWait(tx, ddlLockMs);
    const { chainedThrough } = await createAuditChainRepository(tx).lockState();
    if ((await auditMonths.findLastBefore(keptFrom)) > chainedThrough) return 0;
    if (isExported && (await exports.hasUnexportedBefore('blobs', keptFrom))) return 0;
    if (receiverUrl !== null && (await exports.hasUnexportedBefore('receiver', keptFrom))) return 0;
    return auditMonths.dropMonthsBefore(keptFrom);
  });
  const { deleteDropped } = createAuditRetentionRepository(db);
  /** Errors by organization. */
  const failures = new Map<string, unknown>();
  // Heads are deleted before the batches, which show what there is to delete: listing all heads takes long.
  for (const { baseBatch, organizationId } of await createAuditChainRepository(db).listDropped()) {
    try {
      let deleted = 0;
      for await (const { batch, key } of listHeads(blobs, organizationId)) {
        if (signal?.aborted) return dropped;
        if (batch >= baseBatch) continue;
        // If this process may not delete, the batches stay until it may.
        if (deleted === 0 && (await findDeletionBar(context)) !== null) return dropped;
        if (deleted++ % deletesPerLook === 0 && !(await mayGoOnDeleting(context))) return dropped;
        await blobs.delete(key);
      }
    } catch (error) {
      await assertStoreReachable(blobs, error);
      failures.set(organizationId, error);
      metrics.tasksPostponed.labels('drop-old-audit').inc();
      logger.warn({ organizationId, err: error }, 'the heads of dropped audit batches could not be deleted');
    }
  }
  const except = [...failures.keys()];
  while ((await deleteDropped(batchesAtOnce, except)) === batchesAtOnce) if (signal?.aborted) return dropped;
  for (const error of failures.values()) throw error;
  return dropped;
}
