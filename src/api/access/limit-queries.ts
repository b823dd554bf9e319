import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import { type QuotaName, quotaNames } from '../../shared/access/quotas/quotas.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { OrganizationNotVisibleError } from './organizations.ts';

/** What an organization may do, and what it uses. */
export interface Limit {
  readonly name: QuotaName;
  /** Null: no limit. */
  readonly limit: number | null;
  /** Null: it is not measured, or not known now. */
  readonly used: number | null;
}

/** What the dashboard shows of the limits of organizations. */
export class LimitQueries {
  readonly #context: Pick<ApiContext, 'config' | 'db' | 'payloads' | 'quotas'>;

  constructor(context: Pick<ApiContext, 'config' | 'db' | 'payloads' | 'quotas'>) {
    this.#context = context;
  }

  /** Throws NotFoundError. */
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
      /** When the bytes that are kept were measured last; null: never. */
      measuredAt: measuredAt?.toISOString() ?? null,
      /** Of the whole server; null: no limit. */
      requestsPerMinute: { token: token || null, user: user || null, address: address || null },
    };
  }

  /** Of the room with the most: the limit is that of each room. Null if that cannot be known now. */
  async #bytesInFlight(organization: string): Promise<number | null> {
    const { payloads } = this.#context;
    const budgets = await Promise.all([payloads.heldByKey('writes'), payloads.heldByKey('imports')]).catch(() => null);
    return budgets && Math.max(...budgets.map((budget) => budget.get(organization) ?? 0));
  }
}
