import type { AppContext } from '../../shared/context.ts';
import { createQuotaRepository } from '../../shared/quotas/quota-repository.ts';

/** Measures what the organizations with a limit on it keep. One that cannot be measured does not hold up the others. */
export async function measureUsage({ config, db, logger }: AppContext, signal?: AbortSignal): Promise<void> {
  const quotas = createQuotaRepository(db);
  for (const organizationId of await quotas.listMeasured(config.quotas.keptBytes > 0)) {
    if (signal?.aborted) return;
    try {
      await quotas.measure(organizationId);
    } catch (error) {
      logger.warn({ organizationId, err: error }, 'stored bytes could not be measured');
    }
  }
}
