import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import { type QuotaName, quotaNames } from '../../shared/access/quotas/quotas.ts';
import { createStorageRepository } from '../../shared/access/quotas/storage-repository.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { OrganizationNotVisibleError } from './organizations.ts';

const storageDays = 90;

export interface Limit {
  readonly name: QuotaName;
  /** Null: no limit. */
  readonly limit: number | null;
  /** Null: not measured, or currently unknown. */
  readonly used: number | null;
}

export class QuotaQueries {
  readonly #context: Pick<ApiContext, 'config' | 'db' | 'payloads' | 'quotas'>;

  constructor(context: Pick<ApiContext, 'config' | 'db' | 'payloads' | 'quotas'>) {
    this.#context = context;
  }

  async get(organization: string) {
    const { config, db, quotas } = this.#context;
    const usage = await createQuotaRepository(db).findUsage(organization);
    if (!usage) throw new OrganizationNotVisibleError();
    const limits = await quotas.limitsOf(organization);
    const { keptBytes, measuredAt, stacks, updates } = usage;
    const used: Partial<Record<QuotaName, number | null>> = {
      ...{ keptBytes, stacks, updates },
      inFlightBytes: await this.#bytesInFlight(organization),
    };
    const items: Limit[] = quotaNames.map((name) => ({ name, limit: limits[name], used: used[name] ?? null }));
    const { address, token, user } = config.requestsPerMinute;
    return {
      items,
      /** Null: never. */
      measuredAt: measuredAt?.toISOString() ?? null,
      days: await createStorageRepository(db).listDaysOf(organization, storageDays),
      /** Limits of the whole server; null: no limit. */
      requestsPerMinute: { token: token || null, user: user || null, address: address || null },
    };
  }

  /** The limit applies to each in-flight budget, so the fullest one counts. Null if it is currently unknown. */
  async #bytesInFlight(organization: string): Promise<number | null> {
    const { payloads } = this.#context;
    const budgets = await Promise.all([payloads.heldByKey('writes'), payloads.heldByKey('imports')]).catch(() => null);
    return budgets && Math.max(...budgets.map((budget) => budget.get(organization) ?? 0));
  }
}
