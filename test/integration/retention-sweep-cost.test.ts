import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Queryable } from '../../src/shared/platform/db/sql.ts';
import { createRetentionRepository } from '../../src/shared/state/retention/retention-repository.ts';
import { createUpdateRuleRepository } from '../../src/shared/updates/rules/update-rule-repository.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { createTestDatabase, type TestDatabase } from '../support/test-app.ts';

// Every statement of the sweep costs what its limit says, whatever else there is: 200,000 updates, and stacks with 10,000 versions and
// 10,000 previews.

let database: TestDatabase;
let client: pg.Client;
let stackId: string;
let organizationId: string;
let versions: { id: string; checkpointId: string }[];
let previews: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query('set session_replication_role = replica');
  await client.query(`insert into organizations (name) values ('acme')`);
  await client.query(`insert into projects (organization_id, name) select id, 'web' from organizations`);
  await client.query(
    `insert into stacks (project_id, name) select id, 's' || n from projects, generate_series(1, 10) n`,
  );
  await client.query(`insert into stack_listings (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
    select p.organization_id, '', p.name, s.name, '', s.id from stacks s join projects p on p.id = s.project_id`);
  await client.query(`insert into checkpoints (id, stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes, encode_at)
    select md5(s.name || n)::uuid, s.id, sha256(n::text::bytea), 100, 100, 'zstd', 1, '\\x00', null from stacks s, generate_series(1, 10000) n`);
  // After each version a preview of its state; of version 5000 of the first stack, all previews.
  await client.query(`insert into updates (stack_id, kind, dry_run, exclusive, status, stack_version, base_stack_version, expires_at, started_at,
      ended_at, checkpoint_id, base_checkpoint_id, events_archived)
    select s.id, case when k.preview then 'preview' else 'update' end, k.preview, not k.preview, 'succeeded', case when not k.preview then n end,
      n - 1, now(), now(), now() - make_interval(hours => 10000 - n),
      md5(s.name || case when k.preview and s.name = 's1' then 5000 else n end)::uuid,
      md5(s.name || case when k.preview and s.name = 's1' then 5000 when k.preview then n else n - 1 end)::uuid, true
    from stacks s, generate_series(1, 10000) n, (values (false), (true)) k (preview)`);
  await client.query(`update stacks set stack_version = 10000, checkpoint_id = md5(name || 10000)::uuid`);
  await client.query(`insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes,
      codec, inline_bytes)
    select u.id, 1, 9, 9, '[]', '', 1, 1, 'zstd', '\\x00' from updates u join stacks s on s.id = u.stack_id where s.name = 's1'`);
  await client.query(
    `insert into update_rules (organization_id, kind, settings) select id, 'keep-versions', '{"newest": 10}' from organizations`,
  );
  await client.query('set session_replication_role = origin');
  await analyzeExactly(client);
  const first = async <R extends pg.QueryResultRow>(text: string): Promise<R[]> => (await client.query<R>(text)).rows;
  [{ id: stackId, organizationId }] = (await first<{ id: string; organizationId: string }>(
    `select s.id, p.organization_id as "organizationId" from stacks s join projects p on p.id = s.project_id where s.name = 's1'`,
  )) as [{ id: string; organizationId: string }];
  versions = await first(`select u.id, u.checkpoint_id as "checkpointId" from updates u
    where u.stack_id = '${stackId}' and u.stack_version between 4980 and 5029 order by u.stack_version`);
  previews = (
    await first<{ id: string }>(
      `select id from updates where stack_id = '${stackId}' and dry_run order by number limit 50`,
    )
  ).map(({ id }) => id);
}, 240_000);
afterAll(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

const ids = () => versions.map(({ id }) => id);
const states = () => versions.map(({ checkpointId }) => checkpointId);

describe('a statement of the sweep reads no more than its limit', () => {
  type Rows = ReturnType<typeof createRetentionRepository>;
  test.each<[string, (rows: Rows, db: Queryable) => Promise<unknown>, number]>([
    ['organizations with rules', (rows) => rows.listRuled(), 5],
    ['a page of stacks', (rows) => rows.listStacks(organizationId, null, 200), 40],
    ['the progress of a stack', (rows) => rows.findProgress(stackId), 15],
    ['the lock of a stack', (_, db) => createUpdateRuleRepository(db).lockIdleStack(stackId), 20],
    ['a page of versions', (rows) => rows.listVersions(stackId, 5_000, 500), 1_010],
    ['a page of updates', (rows) => rows.listUpdates(stackId, 0, 500), 510],
    ['a page of previews', (rows) => rows.listPreviews(stackId, 0, 200), 610],
    // Each looks for a stack, updates and journals.
    ['which states are needed', (rows) => rows.listUnneeded(stackId, states()), 12 * 50],
    ['previews that forget a state', (rows) => rows.detachPreviews(states(), 200), 900],
    ['marks of states', (rows) => rows.markStates(stackId, ids()), 14 * 50],
    ['which states are unused', (rows) => rows.listUnused(stackId, states(), ids()), 14 * 50],
    ['chunks of states', (rows) => rows.releaseChunks(states(), 200), 200],
    ['marks of events', (rows) => rows.markEvents(ids()), 2 * 50],
    ['events', (rows) => rows.deleteSegments(previews, 50), 3 * 50],
    ['previews', (rows) => rows.deletePreviews(stackId, previews), 8 * 50],
  ])('%s', async (_, work, most) => {
    const plan = await planOf(client, (db) => work(createRetentionRepository(db), db));
    // Rows that change are found, and written to about ten indexes.
    const { pages, read } = plan;
    expect({ read, pages, isFew: read <= most && pages <= 20 * most + 50 }).toEqual({ read, pages, isFew: true });
  });
});
