import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import type { AppContext } from '../../shared/context.ts';

const organizationsAtOnce = 50;

/**
 * Measures the bytes that organizations keep, soon after they change. A failed measurement does not block the others. Returns how many it
 * measured.
 */
export async function measureStorage(
  { db, logger }: Pick<AppContext, 'db' | 'logger'>,
  signal?: AbortSignal,
): Promise<number> {
  const storage = createStorageRepository(db);
  let measured = 0;
  const tried = new Set<string>();
  for (;;) {
    const due = await storage.listDue(organizationsAtOnce);
    const before = tried.size;
    for (const organizationId of due) {
      if (signal?.aborted) return measured;
      if (tried.has(organizationId)) continue;
      tried.add(organizationId);
      try {
        await storage.measure(organizationId, signal);
        measured++;
      } catch (error) {
        if (signal?.aborted) return measured;
        logger.warn({ organizationId, err: error }, 'stored bytes could not be measured');
      }
    }
    if (due.length < organizationsAtOnce || tried.size === before) return measured;
  }
}
