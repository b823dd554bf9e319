import type { Database } from '../../platform/db/database.ts';
import type { Queryable } from '../../platform/db/sql.ts';
import type { Logger } from '../../platform/logger/logger.ts';
import { createQuotaRepository } from './quota-repository.ts';
import {
  limitsBy,
  noOverrides,
  type QuotaLimits,
  type QuotaName,
  type QuotaOverrides,
  tooManyBytes,
  tooManyStacks,
  tooManyUpdates,
} from './quotas.ts';

/** Every process sees a change of limits within this time. */
const maxAgeMs = 5_000;

interface Organization {
  readonly id: string;
  readonly name: string;
}

export interface QuotaParts {
  readonly db: Database;
  /** From the settings; 0 for no limit. */
  readonly defaults: Readonly<Record<QuotaName, number>>;
  readonly logger: Logger;
  readonly onRefused: (quota: QuotaName) => void;
}

/** Costs one query every few seconds while no limit is set. */
export class Quotas {
  readonly #parts: QuotaParts;
  #overrides: ReadonlyMap<string, QuotaOverrides> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  /** Incremented by `forget`. A read from an earlier generation may not have seen a change. */
  #generation = 0;

  constructor(parts: QuotaParts) {
    this.#parts = parts;
  }

  /**
   * The limits are up to a few seconds old; older if the database does not respond. Do not call this inside a transaction, because it may
   * need its own connection.
   */
  async limitsOf(organization: string): Promise<QuotaLimits> {
    if (performance.now() - this.#readAt >= maxAgeMs) {
      this.#reading ??= this.#read();
      await this.#reading;
    }
    return limitsBy(this.#parts.defaults, this.#overrides.get(organization) ?? noOverrides);
  }

  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#reading = null;
    this.#generation++;
  }

  refused(quota: QuotaName): void {
    this.#parts.onRefused(quota);
  }

  /**
   * Call this in the transaction that adds a stack, before the addition, with `limits` read before the transaction. Other transactions may
   * be adding stacks too, so `assertMayKeepStack` makes the final decision. Throws QuotaReachedError.
   */
  async assertMayAddStack(tx: Queryable, organization: Organization, limits: QuotaLimits): Promise<void> {
    if (limits.stacks === null) return;
    await this.#assertStacks(tx, organization, limits.stacks, 0);
  }

  /**
   * Call this in the same transaction once it has added the stack and waits for nothing more. From here to their commits, such transactions
   * run one after another, across all processes. Throws QuotaReachedError.
   */
  async assertMayKeepStack(tx: Queryable, organization: Organization, limits: QuotaLimits): Promise<void> {
    if (limits.stacks === null) return;
    await createQuotaRepository(tx).lockStackCount(organization.id);
    await this.#assertStacks(tx, organization, limits.stacks, 1);
  }

  /** `added` is the number of stacks that the transaction itself has added. */
  async #assertStacks(tx: Queryable, { id, name }: Organization, limit: number, added: number): Promise<void> {
    const used = (await createQuotaRepository(tx).countStacks(id)) - added;
    if (used < limit) return;
    this.refused('stacks');
    throw tooManyStacks(name, limit, used);
  }

  /**
   * Call this in the transaction that adds an update, before any limit or stack is locked, with `limits` read before the transaction. Until
   * its commit, no other transaction adds an update to the organization, in any process. Throws QuotaReachedError.
   */
  async assertMayAddUpdate(tx: Queryable, organization: Organization, limits: QuotaLimits): Promise<void> {
    if (limits.updates === null) return;
    const quotas = createQuotaRepository(tx);
    await quotas.lockUpdateCount(organization.id);
    const used = await quotas.countUpdates(organization.id);
    if (used < limits.updates) return;
    this.refused('updates');
    throw tooManyUpdates(organization.name, limits.updates, used);
  }

  /** Decides by the last measurement. Throws QuotaReachedError. */
  async assertMayKeepMore(organization: string): Promise<void> {
    const { keptBytes: limit } = await this.limitsOf(organization);
    if (limit === null) return;
    const used = await createQuotaRepository(this.#parts.db).findKeptBytes(organization);
    if (used < limit) return;
    this.refused('keptBytes');
    throw tooManyBytes(organization, limit, used);
  }

  async #read(): Promise<void> {
    const generation = this.#generation;
    let overrides = this.#overrides;
    try {
      const rows = await createQuotaRepository(this.#parts.db).listOverrides();
      overrides = new Map(rows.map(({ organization, ...limits }) => [organization, limits]));
    } catch (error) {
      this.#parts.logger.warn({ err: error }, 'quotas could not be read; the last known ones apply');
    }
    if (generation !== this.#generation) return;
    this.#overrides = overrides;
    this.#readAt = performance.now();
    this.#reading = null;
  }
}
