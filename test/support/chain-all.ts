import { chainAudit } from '../../src/workers/audit/chain-audit.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/**
 * One run gives up after 2 s when a transaction is open anywhere on the Postgres server, which other test files share; the next run goes
 * on, as in production.
 */
export async function chainAll(app: TestApp): Promise<void> {
  await until(() => chainAudit(app.context), 'all audit events are chained');
}
