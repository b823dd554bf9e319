import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import type { AppContext } from '../../shared/context.ts';

/** Measures the stored bytes of organizations that have a limit on them. A failed measurement does not block the others. */
export async function measureUsage({ config, db, logger }: AppContext, signal?: AbortSignal): Promise<void> {
  const quotas = createQuotaRepository(db);
  for (const organizationId of await quotas.listMeasured(config.quotas.keptBytes > 0)) {
    if (signal?.aborted) return;
    try {
      await quotas.measure(organizationId, signal);
    } catch (error) {
      if (signal?.aborted) return;
      logger.warn({ organizationId, err: error }, 'stored bytes could not be measured');
    }
  }
}
