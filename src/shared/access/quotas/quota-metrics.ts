import type { Database } from '../../platform/db/database.ts';
import type { PayloadStore } from '../../platform/payloads/payload-store.ts';
import { oneAtATime } from '../../platform/telemetry/gauges.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { createQuotaRepository } from './quota-repository.ts';
import type { Quotas } from './quota-service.ts';
import { type QuotaName, quotaNames, quotaOptions } from './quotas.ts';
import { createStorageRepository } from './storage-repository.ts';

const maxOrganizations = 200;

/** For the 200 organizations that keep the most. */
export function registerStorageGauge(metrics: Metrics, db: Database): void {
  metrics.gaugeByLabels(
    'holdfast_storage_bytes',
    'Bytes that an organization keeps, as stored: states, journals and events as last measured, and policy packs. Every process reports the same.',
    ['organization', 'kind'],
    async () =>
      (await createStorageRepository(db).listNewest(maxOrganizations)).flatMap(
        ({ eventBytes, journalBytes, organization, packBytes, stateBytes }) => [
          { labels: { organization, kind: 'states' }, value: stateBytes },
          { labels: { organization, kind: 'journals' }, value: journalBytes },
          { labels: { organization, kind: 'events' }, value: eventBytes },
          { labels: { organization, kind: 'policy-packs' }, value: packBytes },
        ],
      ),
  );
}

interface QuotaGauge {
  readonly labels: { readonly organization: string; readonly quota: string };
  readonly limit: number;
  /** Null if the usage is not measured. */
  readonly used: number | null;
}

interface QuotaGaugeParts {
  readonly db: Database;
  readonly payloads: PayloadStore;
  readonly quotas: Quotas;
  /** From the settings; 0 for no limit. */
  readonly defaults: Readonly<Record<QuotaName, number>>;
}

/**
 * For the first 200 organizations with limits. Those with their own limits come first, then, if the settings have limits, the others, by
 * name.
 */
export function registerQuotaGauges(metrics: Metrics, { db, payloads, quotas, defaults }: QuotaGaugeParts): void {
  const onlyOwnLimits = quotaNames.every((name) => defaults[name] === 0);
  // Both gauges share one read.
  const read = oneAtATime(async (): Promise<QuotaGauge[]> => {
    const rows = await createQuotaRepository(db).listUsage({ onlyOwnLimits, limit: maxOrganizations });
    if (rows.length === 0) return [];
    const held = Promise.all([payloads.heldByKey('writes'), payloads.heldByKey('imports')]);
    // Unknown while Redis is down.
    const budgets = await held.catch(() => null);
    const values: QuotaGauge[] = [];
    for (const row of rows) {
      const { organization } = row;
      const limits = await quotas.limitsOf(organization);
      // The limit applies to each in-flight budget separately.
      const inFlightBytes = budgets && Math.max(...budgets.map((budget) => budget.get(organization) ?? 0));
      const used: Partial<Record<QuotaName, number | null>> = { ...row, inFlightBytes };
      for (const name of quotaNames) {
        const limit = limits[name];
        const labels = { organization, quota: quotaOptions[name] };
        if (limit !== null) values.push({ labels, limit, used: used[name] ?? null });
      }
    }
    return values;
  });
  const labelNames = ['organization', 'quota'] as const;
  const limits = async () => (await read()).map(({ labels, limit }) => ({ labels, value: limit }));
  const uses = async () =>
    (await read()).flatMap(({ labels, used }) => (used === null ? [] : [{ labels, value: used }]));
  metrics.gaugeByLabels('holdfast_quota_limit', 'Limits of organizations.', labelNames, limits);
  metrics.gaugeByLabels(
    'holdfast_quota_used',
    'What these organizations use: stacks, updates, body bytes in flight, and bytes kept as last measured.',
    labelNames,
    uses,
  );
}
