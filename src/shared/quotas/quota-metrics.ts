import type { Database } from '../platform/db/database.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createQuotaRepository } from './quota-repository.ts';
import type { Quotas } from './quota-service.ts';
import { type QuotaName, quotaNames, quotaOptions } from './quotas.ts';

/** Maximum number of organizations with metrics. */
const maxOrganizations = 200;

interface Figure {
  readonly labels: { readonly organization: string; readonly quota: string };
  readonly limit: number;
  /** Null if it is not measured. */
  readonly used: number | null;
}

/** Registers metrics for organizations with their own limits: the first 200 by name. */
export function registerQuotaGauges(metrics: Metrics, db: Database, quotas: Quotas): void {
  const read = async (): Promise<Figure[]> => {
    const rows = await createQuotaRepository(db).listUsage({ onlyOwnLimits: true, limit: maxOrganizations });
    const figures: Figure[] = [];
    for (const row of rows) {
      const { organization } = row;
      const limits = await quotas.limitsOf(organization);
      const used: Partial<Record<QuotaName, number | null>> = row;
      for (const name of quotaNames) {
        const limit = limits[name];
        const labels = { organization, quota: quotaOptions[name] };
        if (limit !== null) figures.push({ labels, limit, used: used[name] ?? null });
      }
    }
    return figures;
  };
  const labelNames = ['organization', 'quota'] as const;
  const limits = async () => (await read()).map(({ labels, limit }) => ({ labels, figure: limit }));
  const uses = async () =>
    (await read()).flatMap(({ labels, used }) => (used === null ? [] : [{ labels, figure: used }]));
  metrics.gaugeByLabels('holdfast_quota_limit', 'Limits of organizations with their own limits.', labelNames, limits);
  metrics.gaugeByLabels(
    'holdfast_quota_used',
    'What these organizations use: stacks, updates, and bytes kept as last measured.',
    labelNames,
    uses,
  );
}
