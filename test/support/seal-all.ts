import { sealAudit } from '../../src/workers/audit/seal-audit.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/**
 * Seals all audit events that are committed. One run gives up after 2 s when a transaction is open anywhere on the Postgres server,
 * which other test files share; the next run goes on, as in production.
 */
export async function sealAll(app: TestApp): Promise<void> {
  await until(() => sealAudit(app.context), 'all audit events are sealed');
}
