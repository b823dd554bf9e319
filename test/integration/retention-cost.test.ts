import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createAttemptRepository } from '../../src/shared/identity/attempt-repository.ts';
import { createProviderRepository } from '../../src/shared/identity/provider-repository.ts';
import { createSessionRepository } from '../../src/shared/identity/session-repository.ts';
import { createSignInPaceRepository } from '../../src/shared/identity/sign-in-pace-repository.ts';
import { createTokenRepository } from '../../src/shared/identity/token-repository.ts';
import { createExchangeRepository } from '../../src/shared/identity/trust/exchange-repository.ts';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createOutcomeRepository } from '../../src/shared/platform/outcomes/outcome-repository.ts';
import { createApprovalRepository } from '../../src/shared/updates/approvals/approval-repository.ts';
import { createRefusedRunRepository } from '../../src/shared/updates/refused-run-repository.ts';
import { createDeliveryRepository } from '../../src/shared/webhooks/delivery-repository.ts';
import { createAbandonedPackRepository } from '../../src/workers/policies/abandoned-pack-repository.ts';
import { createProjectDayRepository } from '../../src/workers/statistics/project-day-repository.ts';
import { explainingPool } from '../../testkit/query-plan.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

let database: TestDatabase;
let client: pg.Client;
const rows = 5_000;

/** Nothing of it is due. */
beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query('set session_replication_role = replica');
  const add = (table: string, columns: string, values: string) =>
    client.query(`insert into ${table} (${columns}) select ${values} from generate_series(1, ${rows}) n`);
  const id = 'gen_random_uuid()';
  const hash = `decode(md5(${id}::text), 'hex')`;
  await add('update_approvals', 'stack_id, kind, commit_id, asked_by, request', `${id}, 'delete', n::text, 'a', 'x'`);
  await add('refused_runs', 'organization_id, stack_id, reason, message', `${id}, ${id}, 'busy', ''`);
  await add('stack_days', 'organization_id, stack_id, day', `${id}, ${id}, now()::date`);
  await add(
    'project_days',
    'organization_id, day, project_name, runs, failed, cancelled, previews, failed_previews, waits, run_ms, waited_ms, longest_ms',
    `${id}, now()::date, 'p', 1, 0, 0, 0, 0, 0, 0, 0, 0`,
  );
  await add(
    'project_day_deliveries',
    'organization_id, day, project_name, kind, seconds, count',
    `${id}, now()::date, 'p', 'lead', 1, 1`,
  );
  await add('stack_counts', 'organization_id, stacks, is_sum', `${id}, 1, true`);
  await add(
    'sign_in_flows',
    'flow_hash, kind, data, expires_at',
    `${hash}, 'provider', '{}', now() + interval '1 hour'`,
  );
  await add(
    'sign_in_attempts',
    'key, points, expire',
    `${id}::text, 1, 1000 * extract(epoch from now() + interval '1 hour')::bigint`,
  );
  await add('sign_in_paces', 'login_hash, level, at, next_at', `${id}::text, 1, now(), now()`);
  await add('job_results', 'job_id, outcome', `${id}, '{}'`);
  await add(
    'exchanged_id_tokens',
    'key, request, token_id, expires_at',
    `${hash}, '', ${id}, now() + interval '1 hour'`,
  );
  await add(
    'api_tokens',
    'user_id, token_hash, is_session, expires_at',
    `${id}, ${hash}, n % 2 = 0, now() + interval '1 hour'`,
  );
  await add('api_tokens', 'user_id, token_hash, revoked_at', `${id}, ${hash}, now() - interval '1 day'`);
  await add('webhook_events', 'organization_id, organization, event', `${id}, 'o', 'x'`);
  await client.query(
    `insert into webhook_deliveries (webhook_id, event_id, state) select ${id}, id, 'delivered' from webhook_events`,
  );
  await client.query(`insert into policy_pack_versions (pack_id, version, version_tag, display_name, description, sha256, size_bytes, stored_bytes, codec, inline_bytes, published_at)
    select ${id}, n, n::text, '', '', '', 1, 1, 'gzip', '', now() from generate_series(1, ${rows}) n`);
  await client.query('set session_replication_role = origin');
  await analyzeExactly(client);
});
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

const limits = { maxSeconds: 30 * 86_400, idleSeconds: 86_400 };

// Not sessions and levels: each use changes their time, which an index would make expensive, and there are few of them.
test.each<[string, (db: Queryable) => Promise<unknown>]>([
  ['tokens', (db) => createTokenRepository(db).deleteEnded({ named: 400, ofOthers: 30 }, 500)],
  ['approvals', (db) => createApprovalRepository(db).deleteOld(100, 500)],
  ['refused runs', (db) => createRefusedRunRepository(db).deleteOld(100, 500)],
  ['days of stacks', (db) => createRefusedRunRepository(db).deleteOldDays(100, 500)],
  ['days of projects', (db) => createProjectDayRepository(db).deleteOld(100, 500)],
  ['changes of days of projects', (db) => createProjectDayRepository(db).addChanges(500)],
  ['deliveries of projects', (db) => createProjectDayRepository(db).deleteOldDeliveries(100, 500)],
  ['changes of deliveries of projects', (db) => createProjectDayRepository(db).addDeliveryChanges(500)],
  ['numbers of stacks', (db) => createProjectDayRepository(db).addStackCounts(500)],
  ['longest runs of projects', (db) => createProjectDayRepository(db).findLongest(100)],
  ['flows of sign-ins', (db) => createProviderRepository(db).deleteEndedFlows()],
  ['attempts to sign in', (db) => createAttemptRepository(db).deleteOld()],
  ['paces of sign-ins', (db) => createSignInPaceRepository(db).deleteOld()],
  ['tokens of sessions', (db) => createSessionRepository(db, limits as never).deleteExpiredTokens()],
  ['job_results', (db) => createOutcomeRepository(db).deleteOlderThan(86_400)],
  ['exchanges', (db) => createExchangeRepository(db).deleteExpired(500)],
  ['events of webhooks', (db) => createDeliveryRepository(db).deleteOld(30, 500)],
  ['deliveries', (db) => createDeliveryRepository(db).deleteOrphans(500)],
  ['versions of policy packs', (db) => createAbandonedPackRepository(db).deleteVersions(500)],
])('a sweep of %s that finds nothing reads nothing', async (_, work) => {
  const { pool, statements } = explainingPool(client);
  await client.query('begin');
  await work(pool as Queryable);
  await client.query('rollback');
  expect(statements).toHaveLength(1);
  const [plan] = statements;
  expect({ read: plan?.read, areFew: (plan?.pages ?? 0) <= 12, pages: plan?.pages }).toEqual({
    read: 0,
    areFew: true,
    pages: plan?.pages,
  });
});
