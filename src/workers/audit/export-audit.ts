import { type AuditFormat, batchText } from '../../shared/audit/audit-formats.ts';
import { createAuditListRepository } from '../../shared/audit/audit-list-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { inParallel } from '../../shared/platform/blobs/in-parallel.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import { ownsStore } from '../../shared/state/blobs/store-ownership.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { createAuditExportRepository, type UnexportedRow } from './audit-export-repository.ts';

const batchesAtOnce = 50;
const chainsAtOnce = 8;

/**
 * Writes the events of chained batches to the blob store, if this database owns it, in one object per batch. Its key and bytes depend only
 * on the batch and the format, so a killed run is repeated, and a late put changes nothing. A batch that cannot be written blocks only its
 * own organization; its error is thrown after the others are done.
 */
export async function exportAudit(
  { blobs, config, db, logger, metrics }: Pick<AppContext, 'blobs' | 'config' | 'db' | 'logger' | 'metrics'>,
  signal?: AbortSignal,
): Promise<number> {
  const exports = createAuditExportRepository(db);
  const events = createAuditListRepository(db);
  const { format } = config.audit;
  let exported = 0;
  /** Errors by organization. */
  const failures = new Map<string, unknown>();
  const write = async (batch: UnexportedRow): Promise<void> => {
    const bytes = Buffer.from(batchText(format, await events.listBatch(batch), holdfastVersion));
    const key = exportKey(batch, format);
    await blobs.put(key, chunksOf(bytes));
    const stored = await blobs.stat(key);
    if (stored?.storedBytes !== bytes.length)
      throw new Error(`${key} should have ${bytes.length} bytes, but has ${stored?.storedBytes ?? 'none'}`);
    await exports.noteExported('blobs', batch.organizationId, batch.batch);
  };
  const writeChain = async (batches: readonly UnexportedRow[]): Promise<void> => {
    for (const batch of batches) {
      if (signal?.aborted) return;
      try {
        await write(batch);
        exported++;
      } catch (error) {
        await assertStoreReachable(blobs, error);
        const { organizationId } = batch;
        failures.set(organizationId, error);
        metrics.tasksPostponed.labels('export-audit').inc();
        logger.warn({ organizationId, batch: batch.batch, err: error }, 'audit events could not be exported');
        return;
      }
    }
  };
  let after: string | null = null;
  for (;;) {
    const except = [...failures.keys()];
    const batches: readonly UnexportedRow[] = await exports.listUnexported('blobs', {
      ...{ after, except, limit: batchesAtOnce },
    });
    // A copy of the database, e.g. for tests, must not write its events among the other copy's.
    if (batches.length > 0 && !(await ownsStore({ blobs, db }))) {
      logger.warn('audit events are not exported: another copy of this database owns the blob store');
      break;
    }
    const chains = [...Map.groupBy(batches, ({ organizationId }) => organizationId).values()];
    await inParallel(chains, undefined, writeChain, chainsAtOnce);
    if (signal?.aborted) return exported;
    // In rounds, so that an organization with many batches does not delay the others.
    if (batches.length === batchesAtOnce) after = batches.at(-1)?.organizationId ?? null;
    else if (after === null) break;
    else after = null;
  }
  for (const error of failures.values()) throw error;
  return exported;
}

/** Contains the hash, because numbers restart after a restore of an older database. */
function exportKey({ batch, hash, month, organizationId }: UnexportedRow, format: AuditFormat): string {
  const name = `${String(batch).padStart(12, '0')}-${hash.toString('hex').slice(0, 16)}`;
  return `audit/events/${organizationId}/${month.slice(0, 7)}/${name}.${format}`;
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield bytes;
}
