import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { blobRowKeys, letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { query } from '../support/database.ts';
import { countRows, countStatements, createFilledStack, deleteStack, noRows } from '../support/deleted-stacks.ts';
import { createDatabaseOnOwnServer } from '../support/own-postgres.ts';
import { createStack, deployment, gzipped, ok } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const quick = { pauseMs: 0, runMs: 600_000 };

function largestTransaction(counts: readonly { transaction: string; rows: number }[]): number {
  const rows = new Map<string, number>();
  for (const one of counts) rows.set(one.transaction, (rows.get(one.transaction) ?? 0) + one.rows);
  return Math.max(0, ...rows.values());
}

/** Events read through an index so far, once the statistics include that many deleted ones. */
async function eventsRead(app: TestApp, deleted: number): Promise<number> {
  let read = 0;
  await until(async () => {
    const [row] = await query<{ read: number; deleted: number }>(
      app,
      `select idx_tup_fetch::integer as read, n_tup_del::integer as deleted from pg_stat_user_tables where relname = 'engine_events'`,
    );
    read = row?.read ?? 0;
    return (row?.deleted ?? 0) >= deleted;
  }, 'the statistics are there');
  return read;
}

describe('data of a deleted stack', () => {
  test('is deleted in bounded batches, and nothing is left to foreign keys', async () => {
    await using app = await createTestApp();
    const stack = await createFilledStack(app, { updates: 7, events: 33, entries: 21 });
    await query(
      app,
      `insert into former_stack_names (stack_id, organization_id, project_name, stack_name)
       select $1, organization_id, p.name, 'former' || i from projects p, generate_series(1, 5) i`,
      [stack.stackId],
    );
    await query(
      app,
      `with hooks as (
         insert into webhooks (organization_id, stack_id, name, display_name, url, format, is_active, events, event_groups)
         select p.organization_id, s.id, 'n' || i, 'n' || i, 'https://example.com', 'raw', true, '{}', '{}'
         from stacks s join projects p on p.id = s.project_id, generate_series(1, 3) i where s.id = $1 returning id, organization_id
       ), told as (
         insert into webhook_events (organization_id, organization, event)
         select distinct organization_id, 'o', 'update_succeeded' from hooks returning id
       )
       insert into webhook_deliveries (webhook_id, event_id) select h.id, t.id from hooks h, told t, generate_series(1, 9)`,
      [stack.stackId],
    );
    const before = await countRows(app);
    const counted = await countStatements(app);
    await ok(deleteStack(app, stack));
    expect(await counted.deletions()).toEqual([]);
    expect(await countRows(app)).toEqual(before);

    const limits = { ...quick, batchRows: 10, batchUpdates: 3 };
    expect(await createStackDeletion(app.context, limits)()).toBe(1);
    expect(await countRows(app)).toEqual(noRows);
    const deletions = await counted.deletions();
    const ofTables = (...tables: string[]) => deletions.filter(({ table }) => tables.includes(table));
    expect(largestTransaction(ofTables('engine_events', 'journal_entries'))).toBe(10);
    expect(largestTransaction(ofTables('updates'))).toBe(3);
    expect(largestTransaction(ofTables('checkpoints'))).toBe(3);
    expect(largestTransaction(ofTables('former_stack_names'))).toBe(3);
    expect(largestTransaction(ofTables('webhook_deliveries'))).toBe(10);
    // They do not change rows that are deleted later either.
    const changes = (await counted.changes()).filter(({ table }) => table !== 'stacks');
    expect([...deletions, ...changes].filter(({ cascaded }) => cascaded)).toEqual([]);
    expect(await createStackDeletion(app.context, limits)()).toBe(0);
    const metrics = await app.context.metrics.registry.metrics();
    expect(metrics).toContain(`holdfast_stack_rows_deleted_total{table="engine_events"} ${7 * 33}`);
    expect(metrics).toContain('holdfast_stacks_deleting 0');
  });

  test('is bounded in bytes as well; a row above the bound is deleted alone', async () => {
    await using app = await createTestApp();
    const stack = await createFilledStack(app, { updates: 1, events: 6, entries: 0 });
    // Not compressible.
    await query(
      app,
      `update engine_events set event = (select string_agg(md5(i::text || sequence), '') from generate_series(1, 100) i)
       where sequence <> 4`,
    );
    const counted = await countStatements(app);
    await ok(deleteStack(app, stack));
    const deletion = createStackDeletion(app.context, { ...quick, batchBytes: 5_000 });
    expect(await deletion()).toBe(1);
    const deleted = (await counted.deletions()).filter(({ table }) => table === 'engine_events');
    expect(deleted.map(({ rows }) => rows)).toEqual([2, 3, 1]);
    await createFilledStack(app, { updates: 1, events: 3, entries: 0 }).then((other) => ok(deleteStack(app, other)));
    expect(await createStackDeletion(app.context, { ...quick, batchBytes: 1 })()).toBe(1);
    expect(await countRows(app)).toEqual(noRows);
  });

  test('may be large: the call returns without deleting any of it, and no batch exceeds 5,000 rows', async () => {
    await using app = await createTestApp();
    const stack = await createFilledStack(app, { updates: 2, events: 150_000, entries: 12_000 });
    const counted = await countStatements(app);
    const readBefore = await eventsRead(app, 0);
    await ok(deleteStack(app, stack));
    expect(await counted.deletions()).toEqual([]);
    expect(await createStackDeletion(app.context, { runMs: 600_000 })()).toBe(1);
    // Each is read once although the statistics do not know them, not again for every batch.
    expect((await eventsRead(app, 300_000)) - readBefore).toBeLessThan(2 * 300_000);
    const deletions = await counted.deletions();
    const events = deletions.filter(({ table }) => table === 'engine_events');
    expect(events.reduce((sum, { rows }) => sum + rows, 0)).toBe(300_000);
    expect(largestTransaction(deletions)).toBe(5_000);
    expect(await countRows(app)).toEqual(noRows);
  });

  test('leaves index entries behind that are marked as dead, so that later statements skip them', async () => {
    await using database = await createDatabaseOnOwnServer();
    await using app = await createTestApp({ database });
    // ANALYZE is a transaction that is older than the batches.
    await query(app, 'alter table engine_events set (autovacuum_enabled = off)');
    await ok(deleteStack(app, await createFilledStack(app, { updates: 1, events: 10_000, entries: 0 })));
    let steps = 0;
    const inTransaction: typeof app.context.db.inTransaction = (work) => {
      if (++steps > 10) throw new Error('enough');
      return app.context.db.inTransaction(work);
    };
    const db = Object.assign(Object.create(app.context.db) as typeof app.context.db, { inTransaction });
    const deletion = createStackDeletion({ ...app.context, db }, { ...quick, batchRows: 1_000 });
    await expect(deletion()).rejects.toThrow('enough');
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    await client.query('set enable_seqscan = off; set enable_bitmapscan = off');
    const plan = await client.query<{ 'QUERY PLAN': string }>(
      'explain (analyze, costs off) select sequence from engine_events where update_id in (select update_id from journals)',
    );
    await client.end();
    const text = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
    const fetches = [...text.matchAll(/Heap Fetches: (\d+)/g)].map((match) => Number(match[1]));
    expect(Math.max(...fetches)).toBeLessThan(5_000);
    expect((await countRows(app))['engine_events']).toBe(0);
  });

  test('leaves blobs behind as orphans, which the blob sweep deletes', async () => {
    const settings = { HOLDFAST_INLINE_BYTES: '1', blobGraceSeconds: 1 };
    await using app = await createTestApp({ settings });
    const [gone, kept] = [await createStack(app), await createStack(app)];
    for (const stack of [gone, kept])
      await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(3)) }));
    expect(await blobRowKeys(app)).toHaveLength(2);
    await ok(deleteStack(app, gone));
    expect(await createStackDeletion(app.context, quick)()).toBe(1);
    await letBlobsAge(app, 48);
    expect(await sweepBlobs(app.context)).toBe(1);
    expect(await storedKeys(app)).toHaveLength(1);
    await letBlobsAge(app, 48);
    await sweepBlobs(app.context);
    expect(await blobRowKeys(app)).toEqual(await storedKeys(app));
    expect((await ok(app.call('GET', `${kept.path}/export`, { auth: kept.auth }))).json).toEqual(deployment(3));
  });

  test('is left to the next run when time is up; each run does a part', async () => {
    await using app = await createTestApp();
    await ok(deleteStack(app, await createFilledStack(app, { updates: 1, events: 30, entries: 0 })));
    const deletion = createStackDeletion(app.context, { batchRows: 10, pauseMs: 0, runMs: 0 });
    const left: number[] = [];
    for (let run = 1; run <= 3; run++) {
      expect(await deletion()).toBe(0);
      left.push((await countRows(app))['engine_events'] ?? 0);
    }
    expect(left).toEqual([20, 10, 0]);
    expect(await app.context.metrics.registry.metrics()).toContain('holdfast_stacks_deleting 1');
  });

  test('is left as it is when the process stops', async () => {
    const app = await createTestApp();
    await ok(deleteStack(app, await createFilledStack(app, { updates: 1, events: 30, entries: 0 })));
    const deletion = createStackDeletion(app.context, { batchRows: 10, pauseMs: 600_000, runMs: 600_000 });
    const running = deletion();
    await until(async () => (await countRows(app))['engine_events'] === 20, 'the first batch is deleted');
    await app[Symbol.asyncDispose]();
    expect(await running).toBe(0);
  });

  test('that cannot be deleted does not delay other stacks', async () => {
    const lines: string[] = [];
    await using app = await createTestApp({ log: { write: (line) => lines.push(line) } });
    const stuck = await createFilledStack(app, { updates: 1, events: 1, entries: 0 });
    const other = await createFilledStack(app, { updates: 1, events: 1, entries: 0 });
    await query(app, `create function refuse() returns trigger language plpgsql as $$ begin raise 'a fault'; end $$`);
    await query(
      app,
      `create trigger refuse before delete on updates for each row when (old.stack_id = '${stuck.stackId}') execute function refuse()`,
    );
    await ok(deleteStack(app, stuck));
    await ok(deleteStack(app, other));
    const run = createStackDeletion(app.context, quick);
    await expect(run()).rejects.toThrow('a fault');
    expect(await query(app, 'select id from stacks')).toEqual([{ id: stuck.stackId }]);
    // It waits for its next attempt, and the task goes on failing.
    await expect(run()).rejects.toThrow('a fault');
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toContainEqual(
      expect.objectContaining({ stackId: stuck.stackId, msg: 'task: deleted stack skipped' }),
    );
    expect(logged).toContainEqual(
      expect.objectContaining({ stackId: other.stackId, msg: 'deleted stack: all its rows are gone' }),
    );
    // Its fault is no more once it is not to be deleted.
    await query(app, 'update stacks set (held_at, held_by, hold_reason) = (now(), $1, $1)', ['x']);
    expect(await run()).toBe(0);
    await query(app, 'update stacks set (held_at, held_by, hold_reason) = (null, null, null)');
    await query(app, 'drop function refuse cascade');
    expect(await run()).toBe(1);
    expect(await countRows(app)).toEqual(noRows);
  });

  test('is deleted although it comes after a hundred that cannot be', async () => {
    await using app = await createTestApp();
    await createStack(app);
    await query(app, `create function refuse() returns trigger language plpgsql as $$ begin raise 'a fault'; end $$`);
    await query(
      app,
      `create trigger refuse before delete on stacks for each row when (old.name like 'stuck%') execute function refuse()`,
    );
    const add = (name: string, age: string) =>
      query(
        app,
        `insert into stacks (project_id, name, deleted_at)
         select p.id, $1 || i, now() - $2::interval from projects p, generate_series(1, $3) i`,
        [name, age, name === 'stuck' ? 100 : 1],
      );
    await add('stuck', '2 days');
    await add('later', '1 day');
    const run = createStackDeletion(app.context, quick);
    await expect(run()).rejects.toThrow('a fault');
    await expect(run()).rejects.toThrow('a fault');
    expect(await query(app, `select name from stacks where name like 'later%'`)).toEqual([]);
    await query(app, 'drop function refuse cascade');
    expect(await createStackDeletion(app.context, quick)()).toBe(100);
  });
});

test('two workers at once share the work, and each stack is done once', async () => {
  await using first = await createTestApp();
  await using second = await createTestApp({ database: first.database, dataDir: first.dataDir });
  for (let stack = 1; stack <= 3; stack++)
    await ok(deleteStack(first, await createFilledStack(first, { updates: 5, events: 40, entries: 20 })));
  const limits = { pauseMs: 1, runMs: 600_000, batchRows: 7, batchUpdates: 2 };
  const deletions = [first, second].map((app) => createStackDeletion(app.context, limits));
  let gone = 0;
  await until(async () => {
    for (const count of await Promise.all(deletions.map((run) => run()))) gone += count;
    return gone >= 3;
  }, 'all stacks are gone');
  expect(gone).toBe(3);
  expect(await countRows(first)).toEqual(noRows);
});

test('a worker killed during a batch leaves the rest intact, which another worker deletes', async () => {
  await using app = await createTestApp();
  await createFilledStack(app, { updates: 2, events: 2_500, entries: 30 }).then((stack) => ok(deleteStack(app, stack)));
  const total = 5_000;
  const countEvents = async () => (await countRows(app))['engine_events'] ?? 0;
  // The gate is shut from the start and holds a batch inside its transaction once some have passed it.
  await query(
    app,
    `create function pass_gate() returns trigger language plpgsql as
     $$ begin if old.sequence > 300 then perform pg_advisory_xact_lock_shared(1); end if; return old; end $$`,
  );
  await query(app, 'create trigger gate before delete on engine_events for each row execute function pass_gate()');
  const gate = new pg.Client({ connectionString: app.database.ownerUrl });
  await gate.connect();
  await gate.query('select pg_advisory_lock(1)');
  const worker = startDeletionProcess(app);
  try {
    await until(
      async () => {
        const { rows } = await gate.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        );
        return rows.length === 1;
      },
      'a batch waits at the gate',
      { timeoutMs: 120_000 },
    );
    const left = await countEvents();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(total);
    worker.process.kill('SIGKILL');
    await worker.ended;
    await gate.query('select pg_advisory_unlock(1)');
    const deletion = createStackDeletion(app.context, quick);
    // The killed worker's session locks the stack until Postgres notices.
    await until(async () => (await deletion()) === 1, 'the stack is gone');
    expect(await countRows(app)).toEqual(noRows);
  } finally {
    worker.process.kill('SIGKILL');
    await worker.ended;
    await gate.end();
    worker.dispose();
  }
});

function startDeletionProcess(app: TestApp): {
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
  readonly dispose: () => void;
} {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-deletion-'));
  const program = path.join(import.meta.dirname, '../support/delete-stacks-process.ts');
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: directory },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('exit', () => resolve());
  return { process: child, ended: promise, dispose: () => rmSync(directory, { recursive: true, force: true }) };
}
