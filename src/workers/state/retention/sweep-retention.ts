import { createKeptBytesRepository } from '../../../shared/access/quotas/kept-bytes-repository.ts';
import { createStorageRepository } from '../../../shared/access/quotas/storage-repository.ts';
import type { AppContext } from '../../../shared/context.ts';
import { createRetentionRepository } from '../../../shared/state/retention/retention-repository.ts';
import { type Deleted, StackRetention } from './stack-retention.ts';

const stacksAtOnce = 200;
const chunksAtOnce = 50;

/**
 * Applies the retention rules to all due stacks. A stack that fails, or is busy, does not delay the others, and is tried again in the next
 * run.
 */
export async function sweepRetention(
  { chunks, db, logger, metrics }: Pick<AppContext, 'chunks' | 'db' | 'logger' | 'metrics'>,
  signal?: AbortSignal,
): Promise<number> {
  const rows = createRetentionRepository(db);
  const retention = new StackRetention(db);
  const storage = createStorageRepository(db);
  const kept = createKeptBytesRepository(db);
  let all = 0;
  for (const { organization, organizationId } of await rows.listRuled()) {
    const before = all;
    const changed: string[] = [];
    let after: { project: string; stack: string } | null = null;
    do {
      const page = await rows.listStacks(organizationId, after, stacksAtOnce);
      for (const { id, isDue, project, stack } of page) {
        if (signal?.aborted) return all;
        if (!isDue) continue;
        const deleted: Deleted = { versions: 0, events: 0, previews: 0 };
        try {
          if (!(await retention.apply({ id, organizationId }, deleted, signal)))
            metrics.tasksPostponed.labels('retention').inc();
        } catch (error) {
          metrics.tasksPostponed.labels('retention').inc();
          logger.error({ organization, project, stack, err: error }, 'task: retention of a stack failed');
        }
        for (const [kind, count] of Object.entries(deleted)) {
          metrics.retentionDeleted.labels(kind).inc(count);
          all += count;
        }
        if (Object.values(deleted).some((count) => count > 0)) changed.push(id);
      }
      after = page.length < stacksAtOnce ? null : (page.at(-1) ?? null);
    } while (after !== null);
    if (all === before) continue;
    // Chunks of deleted states that no other version needs. Each deletion may leave the base of a chunk unneeded.
    while (!signal?.aborted && (await chunks.sweep(chunksAtOnce)) > 0);
    try {
      // The stacks may have been measured with chunks that are gone by now.
      for (let at = 0; at < changed.length; at += stacksAtOnce) await kept.forget(changed.slice(at, at + stacksAtOnce));
      await storage.measure(organizationId, signal);
    } catch (error) {
      if (!signal?.aborted) logger.warn({ organizationId, err: error }, 'stored bytes could not be measured');
    }
  }
  return all;
}
