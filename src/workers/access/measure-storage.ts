import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { createBackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import { mayDeleteByAge } from '../platform/clock-watch.ts';

const organizationsAtOnce = 50;

/** Measures the bytes that organizations keep, soon after they change. Throws the first fault after trying the others. */
export async function measureStorage(
  { db, logger }: Pick<AppContext, 'db' | 'logger'>,
  signal?: AbortSignal,
): Promise<number> {
  const storage = createStorageRepository(db);
  const forgetsOld = await mayDeleteByAge(createBackgroundTaskRepository(db));
  let measured = 0;
  // Each organization is tried once, even if its clock makes it due again.
  const tried: string[] = [];
  const faults: unknown[] = [];
  for (;;) {
    const due = await storage.listDue(organizationsAtOnce, tried);
    for (const organizationId of due) {
      if (signal?.aborted) return measured;
      tried.push(organizationId);
      try {
        await storage.measure(organizationId, signal);
        if (forgetsOld) await storage.deleteOld(organizationId);
        measured++;
      } catch (error) {
        if (signal?.aborted) return measured;
        logger.warn({ organizationId, err: error }, 'stored bytes could not be measured');
        faults.push(error);
      }
    }
    if (due.length === organizationsAtOnce) continue;
    if (faults.length > 0) throw faults[0];
    return measured;
  }
}
