import { type AuditFormat, batchText } from '../../shared/audit/audit-formats.ts';
import { createAuditListRepository } from '../../shared/audit/audit-list-repository.ts';
import { createSealRepository } from '../../shared/audit/seal-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';

const batchesAtOnce = 50;

/**
 * Writes the events of sealed batches to the blob store, one object for each batch. Its key and its bytes depend on the
 * batch and the format alone, so a run that was killed is repeated, and a late put changes nothing. Returns how many batches.
 */
export async function exportAudit(
  { blobs, config, db }: Pick<AppContext, 'blobs' | 'config' | 'db'>,
  signal?: AbortSignal,
): Promise<number> {
  const seals = createSealRepository(db);
  const events = createAuditListRepository(db);
  const { format } = config.audit;
  let exported = 0;
  for (;;) {
    const batches = await seals.listUnexported('blobs', { limit: batchesAtOnce });
    for (const batch of batches) {
      if (signal?.aborted) return exported;
      const bytes = Buffer.from(batchText(format, await events.listBatch(batch), holdfastVersion));
      const key = exportKey(batch, format);
      await blobs.put(key, chunksOf(bytes));
      const stored = await blobs.stat(key);
      if (stored?.storedBytes !== bytes.length)
        throw new Error(`${key} should have ${bytes.length} bytes, but has ${stored?.storedBytes ?? 'none'}`);
      await seals.noteExported('blobs', batch.organizationId, batch.batch);
      exported++;
    }
    if (batches.length < batchesAtOnce) return exported;
  }
}

/** Where the events of a batch are in the blob store. */
export function exportKey(
  batch: { readonly organizationId: string; readonly batch: number; readonly month: string },
  format: AuditFormat,
): string {
  const { organizationId, month } = batch;
  return `audit/events/${organizationId}/${month.slice(0, 7)}/${String(batch.batch).padStart(12, '0')}.${format}`;
}

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield bytes;
}
