import type { Database } from '../../shared/platform/db/database.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';
import { createProjectDeliveryRepository } from './project-delivery-repository.ts';

const maxOrganizations = 200;
const countedDays = 30;
/** Metrics change slowly, and a query reads a month of each project. */
const everyMs = 10 * 60_000;

/** Registers the metrics of the 200 organizations with the most runs. */
export function registerDeliveryGauges(metrics: Metrics, db: Database): void {
  type Read = ReturnType<ReturnType<typeof createProjectDeliveryRepository>['listOrganizations']>;
  let last: { readonly at: number; readonly read: Read } | null = null;
  // One query for both gauges. If it takes longer than they wait, they find its result the next time.
  const list = (): Read => {
    if (last !== null && performance.now() - last.at < everyMs / 2) return last.read;
    const read = createProjectDeliveryRepository(db).listOrganizations(countedDays, maxOrganizations);
    last = { at: performance.now(), read };
    read.catch(() => {
      last = null;
    });
    return read;
  };
  metrics.gaugeByLabels(
    'holdfast_delivery_runs',
    'Runs of an organization in the last 30 days that have finished or failed, or have succeeded and changed resources. Every API process reports the same.',
    ['organization', 'result'],
    async () =>
      (await list()).flatMap(({ changed, failed, finished, organization }) => [
        { labels: { organization, result: 'finished' }, value: finished },
        { labels: { organization, result: 'failed' }, value: failed },
        { labels: { organization, result: 'changed' }, value: changed },
      ]),
    everyMs,
  );
  metrics.gaugeByLabels(
    'holdfast_delivery_seconds',
    'Median lead time and time to restore of an organization in the last 30 days. Every API process reports the same.',
    ['organization', 'time'],
    async () =>
      (await list()).flatMap(({ leadSeconds, organization, restoreSeconds }) => [
        ...(leadSeconds === null ? [] : [{ labels: { organization, time: 'lead' }, value: leadSeconds }]),
        ...(restoreSeconds === null ? [] : [{ labels: { organization, time: 'restore' }, value: restoreSeconds }]),
      ]),
    everyMs,
  );
}
