import type { Database } from '../platform/db/database.ts';
import type { Queryable } from '../platform/db/sql.ts';
import type { Logger } from '../platform/logger/logger.ts';
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

/** A change of limits is known to every process after this, in ms. */
const freshMs = 5_000;

interface Organization {
  readonly id: string;
  readonly name: string;
}

export interface QuotaParts {
  readonly db: Database;
  /** The limits by the settings; 0 is no limit. */
  readonly defaults: Readonly<Record<QuotaName, number>>;
  readonly logger: Logger;
  readonly onRefused: (quota: QuotaName) => void;
}

/** What organizations may use. Costs a query every few seconds while no limit is set. */
export class Quotas {
  readonly #parts: QuotaParts;
  #overrides: ReadonlyMap<string, QuotaOverrides> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(parts: QuotaParts) {
    this.#parts = parts;
  }

  /**
   * The limits of an organization, as of some seconds ago. Keeps to what it knows when the database does not answer. Not to be
   * asked inside a transaction: it may need a connection of its own.
   */
  async limitsOf(organization: string): Promise<QuotaLimits> {
    if (performance.now() - this.#readAt >= freshMs) {
      this.#reading ??= this.#read().finally(() => {
        this.#reading = null;
      });
      await this.#reading;
    }
    return limitsBy(this.#parts.defaults, this.#overrides.get(organization) ?? noOverrides);
  }

  /** Has the limits read again before they are next asked for. */
  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  /** Notes that a call was refused. */
  refused(quota: QuotaName): void {
    this.#parts.onRefused(quota);
  }

  /**
   * Asked in the transaction that adds a stack, before any other lock, with `limits` from before the transaction. Two at once count
   * one after the other, in whichever processes they are. Throws QuotaReachedError.
   */
  async assertMayAddStack(tx: Queryable, organization: Organization, limits: QuotaLimits): Promise<void> {
    if (limits.stacks === null) return;
    const quotas = createQuotaRepository(tx);
    await quotas.lockOrganization(organization.id);
    const used = await quotas.countStacks(organization.id);
    if (used < limits.stacks) return;
    this.refused('stacks');
    throw tooManyStacks(organization.name, limits.stacks, used);
  }

  /** The same for an update, before its stack is locked. Throws QuotaReachedError. */
  async assertMayAddUpdate(tx: Queryable, organization: Organization, limits: QuotaLimits): Promise<void> {
    if (limits.updates === null) return;
    const quotas = createQuotaRepository(tx);
    await quotas.lockOrganization(organization.id);
    const used = await quotas.countUpdates(organization.id);
    if (used < limits.updates) return;
    this.refused('updates');
    throw tooManyUpdates(organization.name, limits.updates, used);
  }

  /** Whether the organization may begin something that keeps more bytes, by the last measurement. Throws QuotaReachedError. */
  async assertMayKeepMore(organization: string): Promise<void> {
    const { keptBytes: limit } = await this.limitsOf(organization);
    if (limit === null) return;
    const used = await createQuotaRepository(this.#parts.db).findKeptBytes(organization);
    if (used < limit) return;
    this.refused('keptBytes');
    throw tooManyBytes(organization, limit, used);
  }

  async #read(): Promise<void> {
    try {
      const rows = await createQuotaRepository(this.#parts.db).listOverrides();
      this.#overrides = new Map(rows.map(({ organization, ...overrides }) => [organization, overrides]));
    } catch (error) {
      this.#parts.logger.warn({ err: error }, 'quotas could not be read; the last known ones apply');
    }
    this.#readAt = performance.now();
  }
}
