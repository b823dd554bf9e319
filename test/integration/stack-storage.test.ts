import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { createKeptBytesRepository } from '../../src/shared/access/quotas/kept-bytes-repository.ts';
import { createStorageRepository } from '../../src/shared/access/quotas/storage-repository.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { createProjectDayRepository } from '../../src/workers/statistics/project-day-repository.ts';
import { query } from '../support/database.ts';
import { analyzeExactly } from '../support/exact-statistics.ts';
import { planOf } from '../support/plan-of.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();
const many = 3_000;
/** That are measured although nothing has changed. */
const share = 500;
const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
let organizationId: string;

const kept = () => createKeptBytesRepository(app.context.db);
const measure = async (isWhole = false) => {
  await createStorageRepository(app.context.db).measure(organizationId, undefined, isWhole);
  const [row] = await query<{ bytes: number }>(
    app,
    `select state_bytes::int as bytes from organization_storage where organization_id = $1`,
    [organizationId],
  );
  return row?.bytes ?? 0;
};
/** How many stacks were measured since it was called before. */
const countMeasured = async () => {
  const rows = await query(
    app,
    `update stack_storage set measured_at = '2020-01-01' where measured_at > '2020-01-01' returning 1`,
  );
  return rows.length;
};
const idOf = async (name: string) =>
  (await query<{ id: string }>(app, 'select id from stacks where name = $1', [name]))[0]?.id as string;
const write = (name: string, bytes: number) =>
  query(
    app,
    `insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
     select id, '', 1, $2, 'zstd', 0, '' from stacks where name = $1`,
    [name, bytes],
  );
const change = (name: string) =>
  query(app, 'update stack_changes set changed_at = now() where stack_name = $1', [name]);

/** Stacks of 10 bytes each, all measured, the last changes of which were long ago. */
beforeAll(async () => {
  organizationId = (await app.context.identity.ensureOrganization('kept')).id;
  await query(app, `insert into projects (organization_id, name) values ($1, 'p')`, [organizationId]);
  await query(
    app,
    `insert into stacks (project_id, name) select p.id, 's' || n from projects p, generate_series(1, ${many}) n`,
  );
  await query(
    app,
    `insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
     select id, '', 1, 10, 'zstd', 0, '' from stacks`,
  );
  expect(await measure()).toBe(10 * many);
  await query(app, `update stack_changes set changed_at = now() - interval '1 day'`);
});
beforeEach(async () => {
  await measure(true);
  await countMeasured();
});

test('a measurement reads stacks that have changed, and a share of the others', async () => {
  const before = await measure();
  expect(await countMeasured()).toBe(share);
  await write('s2000', 7);
  await change('s2000');
  expect(await measure()).toBe(before + 7);
  expect(await countMeasured()).toBeLessThanOrEqual(share + 1);
  // What has changed nothing else is found by the shares.
  await write('s2001', 5);
  let runs = 0;
  while ((await measure()) !== before + 12) runs++;
  expect(runs).toBeLessThanOrEqual(many / share);
});

test('measurements that write the same stacks at once, and stacks that leave meanwhile, are summed once', async () => {
  const before = await measure(true);
  const names = Array.from({ length: 20 }, (_, n) => `s${1_000 + n}`);
  for (const name of names) await write(name, 3);
  const ids = await Promise.all(names.map(idOf));
  await Promise.all([
    ...[1, 2, 3].map(() => kept().measureStacks(ids)),
    query(app, `delete from stacks where name = 's1500'`),
    createProjectDayRepository(app.context.db).addStackCounts(1_000),
    createProjectDayRepository(app.context.db).addStackCounts(1_000),
  ]);
  const { states } = await kept().sumMeasured(organizationId);
  expect(states).toBe(before + 20 * 3 - 10);
  expect(await measure(true)).toBe(states);
});

test('a stack whose rows retention has deleted is measured in the next run', async () => {
  const before = await measure();
  await query(app, `delete from checkpoints where stack_id = $1 and stored_bytes = 10`, [await idOf('s2500')]);
  await kept().forget([await idOf('s2500')]);
  expect(await measure()).toBe(before - 10);
});

test('a measurement that read before does not take the mark of retention away', async () => {
  const before = await measure();
  const id = await idOf('s2501');
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    await client.query(`update stack_storage set measured_at = '-infinity' where stack_id = $1`, [id]);
    const measuring = kept().measureStacks([id]);
    await until(async () => (await query(app, waiting)).length > 0, 'the measurement waits');
    await query(app, 'delete from checkpoints where stack_id = $1', [id]);
    await client.query('commit');
    expect(await measuring).toBe(0);
    expect(await kept().listOldest(organizationId, true)).toEqual([id]);
  } finally {
    await client.end();
  }
  expect(await measure()).toBe(before - 10);
});

test('a deleted stack counts until nobody can restore it', async () => {
  const before = await measure();
  const id = await idOf('s2600');
  await query(
    app,
    `update stacks set deleted_at = now(), restorable_until = now() + interval '1 day', restorable_in = $2 where id = $1`,
    [id, organizationId],
  );
  expect(await measure(true)).toBe(before);
  await query(app, 'update stacks set restorable_until = null, restorable_in = null where id = $1', [id]);
  expect(await measure(true)).toBe(before - 10);
  await kept().measureStacks([id]);
  expect(await measure(true)).toBe(before - 10);
});

test('a stack that is deleted before it is measured counts while it can be restored', async () => {
  const before = await measure();
  const hide = (name: string) =>
    query(
      app,
      `update stacks set deleted_at = now(), restorable_until = now() + interval '1 day', restorable_in = $2 where name = $1`,
      [name, organizationId],
    );
  await query(app, `insert into stacks (project_id, name) select id, 'short' from projects`);
  await write('short', 7);
  await hide('short');
  await write('s2601', 5);
  await hide('s2601');
  expect(await measure()).toBe(before + 12);
});

test('a whole measurement makes no later one wait, and each is as of its beginning', async () => {
  const read = async () =>
    (
      await query<{ took: number; at: string }>(
        app,
        'select took_ms as took, measured_at::text as at from organization_storage where organization_id = $1',
        [organizationId],
      )
    )[0];
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    const storage = createStorageRepository(app.context.db);
    await query(app, 'delete from organization_storage where organization_id = $1', [organizationId]);
    await storage.measure(organizationId);
    expect((await read())?.took).toBe(0);
    await query(app, 'update organization_storage set took_ms = 123456 where organization_id = $1', [organizationId]);
    await storage.measure(organizationId, undefined, true);
    expect((await read())?.took).toBe(123_456);
    // A measurement that lasts until the transaction ends.
    await client.query('begin');
    await client.query('lock table stack_storage');
    const measuring = storage.measure(organizationId);
    await until(async () => (await query(app, waiting)).length > 0, 'the measurement waits');
    const { rows } = await client.query<{ at: string }>('select clock_timestamp()::text as at');
    await client.query('commit');
    await measuring;
    const found = await read();
    expect([found?.at.localeCompare(rows[0]?.at as string), found?.took === 123_456]).toEqual([-1, false]);
  } finally {
    await client.end();
  }
});

test('a measurement waits for no transaction that holds a stack, and reads it later', async () => {
  const before = await measure();
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await write('s2700', 100);
    await change('s2700');
    await client.query('begin');
    await client.query(`select 1 from stacks where name = 's2700' for update`);
    expect(await measure()).toBe(before);
    await client.query('commit');
    expect(await measure()).toBe(before + 100);
    await client.query('begin');
    await client.query(`delete from stacks where name = 's2700'`);
    await measure();
    await client.query('commit');
    expect(await measure()).toBe(before - 10);
  } finally {
    await client.end();
  }
});

test('no statement reads more than some thousand updates, however many a stack has', async () => {
  const ids = await Promise.all(['s2801', 's2802', 's2803'].map(idOf));
  const updates = 6_000;
  await query(app, 'begin');
  try {
    // Archived events, and rows of an update whose events are not.
    await query(app, 'set local session_replication_role = replica');
    await query(
      app,
      `with u as (
         insert into updates (stack_id, kind, status, exclusive, expires_at, ended_at, events_archived)
         select id, 'update', 'succeeded', true, now(), now(), n > 1 from unnest($1::uuid[]) id, generate_series(1, $2) n
         returning id, events_archived),
       e as (insert into engine_events (update_id, sequence, event) select id, 1, 'x' from u where not events_archived)
       insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec, inline_bytes)
       select id, 1, 1, 1, '', '', 1, 3, 'zstd', '' from u where events_archived`,
      [ids, updates],
    );
  } finally {
    await query(app, 'commit');
  }
  await query(app, 'analyze updates, engine_events, event_segments');
  const most = await app.context.db.inTransaction(async (tx) => {
    let largest = 0;
    const reads = async () => {
      const { read } = await tx.one(sql.rows(Type.Object({ read: Type.Number() }))`
        select (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_xact_user_tables where relname = 'updates'`);
      return read;
    };
    const counted = new Proxy(tx, {
      get: (target, name) =>
        name === 'any' || name === 'query'
          ? async (statement: never) => {
              const before = await reads();
              const answer: unknown = await target[name](statement);
              largest = Math.max(largest, (await reads()) - before);
              return answer;
            }
          : Reflect.get(target, name),
    });
    expect(await createKeptBytesRepository(counted).measureStacks(ids)).toBe(ids.length);
    return largest;
  });
  // A page, and at most one whole stack to find it.
  expect(most).toBeLessThanOrEqual(5_000 + updates);
  const rows = await query<{ bytes: number }>(
    app,
    'select event_bytes::int as bytes from stack_storage where stack_id = any ($1)',
    [ids],
  );
  const ofRow = (await query<{ bytes: number }>(app, `select pg_column_size('x'::text) as bytes`))[0]?.bytes ?? 0;
  for (const { bytes } of rows) expect(Math.abs(bytes - (updates - 1) * 3 - ofRow)).toBeLessThanOrEqual(4);
  await query(app, 'delete from updates where stack_id = any ($1)', [ids]);
});

test('its statements read what they return, and sums few rows', async () => {
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('vacuum (index_cleanup on) stack_storage, stack_changes');
    await analyzeExactly(client, 'stack_storage', 'stack_changes');
    const since = sql.fragment`(now() - interval '1 hour')`;
    const changed = await planOf(client, (db) =>
      createKeptBytesRepository(db).listChanged(organizationId, since, null),
    );
    expect(changed.read).toBe(changed.returned);
    expect(changed.pages).toBeLessThanOrEqual(10);
    const oldest = await planOf(client, (db) => createKeptBytesRepository(db).listOldest(organizationId, false));
    expect([oldest.returned, oldest.read]).toEqual([share, share]);
    const unmeasured = await planOf(client, (db) => createKeptBytesRepository(db).listOldest(organizationId, true));
    expect(unmeasured.read).toBe(0);
    await createProjectDayRepository(app.context.db).addStackCounts(10_000);
    const sum = await planOf(client, (db) => createKeptBytesRepository(db).sumMeasured(organizationId));
    expect(sum.read).toBeLessThanOrEqual(5);
  } finally {
    await client.end();
  }
});
