import { describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type Queryable, sql } from '../../src/shared/platform/db/sql.ts';
import { createRetentionRepository } from '../../src/shared/state/retention/retention-repository.ts';
import { createUpdateRuleRepository } from '../../src/shared/updates/rules/update-rule-repository.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { createStackDeletion } from '../../src/workers/stacks/delete-stacks.ts';
import { sweepRetention } from '../../src/workers/state/retention/sweep-retention.ts';
import { insertEndedUpdate, sampleEvent } from '../support/archived-events.ts';
import { query } from '../support/database.ts';
import {
  encodeAll,
  exportVersion,
  importVersion,
  importVersions,
  stateOf,
  versionsOf,
} from '../support/encode-versions.ts';
import { ask } from '../support/procedures.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';

// Small inline limit: some chunks are in rows, others in the blob store.
const app = testApp({
  settings: {
    ...{ encodeBytesPerSecond: 1_000_000_000_000, HOLDFAST_INLINE_BYTES: '250' },
    ...{ HOLDFAST_DELETED_STACK_DAYS: '0', HOLDFAST_BLOB_RETENTION_SECONDS: '1', blobGraceSeconds: 1 },
  },
});

/** As if everything had happened so many days ago. */
async function age(stack: TestStack, days: number): Promise<void> {
  await query(
    app,
    `update updates u set ended_at = u.ended_at - make_interval(days => $2), started_at = u.started_at - make_interval(days => $2)
     from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where u.stack_id = s.id and o.name = $1`,
    [stack.organization, days],
  );
}

/** Applies the rules, as if the last time was long ago. Returns of how many versions, updates and previews something was deleted. */
async function sweep(): Promise<number> {
  await query(app, `update stack_retention set swept_at = swept_at - interval '1 day'`);
  return sweepRetention(app.context);
}

async function idOf({ organization }: TestStack): Promise<string> {
  const [row] = await query<{ id: string }>(
    app,
    `select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1`,
    [organization],
  );
  return row?.id as string;
}

const exported = (stack: TestStack, version: number) =>
  app.call('GET', `${stack.path}/export/${version}`, { auth: stack.auth });

/** The versions whose states can be exported. */
async function readable(stack: TestStack, count: number): Promise<number[]> {
  const found: number[] = [];
  for (let version = 1; version <= count; version++)
    if ((await exported(stack, version)).status === 200) found.push(version);
  return found;
}

type Parts = Parameters<typeof sweepRetention>[0];

/** Parts of a process whose connections to Postgres end for good at this statement about a stack. */
function dyingAt(parts: Parts, statement: number): Parts {
  let count = 0;
  const guarded = <T extends object>(db: T): T =>
    new Proxy(db, {
      get(target, name) {
        const method = Reflect.get(target, name) as unknown;
        if (typeof method !== 'function') return method;
        if (name === 'inTransaction')
          return (work: (tx: object) => unknown) => method.call(target, (tx: object) => work(guarded(tx)));
        return async (query: { sql?: string }, ...rest: unknown[]) => {
          if (!/retention\.list(Ruled|Stacks)/.test(query.sql ?? '') && ++count >= statement) {
            await (target as Queryable)
              .query(sql.nothing`select pg_terminate_backend(pg_backend_pid())`)
              .catch(() => {});
            throw new Error('killed');
          }
          return method.call(target, query, ...rest);
        };
      },
    });
  return { ...parts, logger: { ...parts.logger, error: () => {} } as Parts['logger'], db: guarded(parts.db) };
}

/** Ended previews and updates of the stack with archived events, one a day, the oldest first. */
async function addUpdates(stack: TestStack, kind: 'preview' | 'update', days: readonly number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const ago of days) {
    const id = await insertEndedUpdate(
      app,
      await idOf(stack),
      [1, 2, 3].map((sequence) => sampleEvent(sequence)),
    );
    await query(
      app,
      `update updates set kind = $2, dry_run = $2 = 'preview', exclusive = $2 <> 'preview',
         started_at = now() - make_interval(days => $3), ended_at = now() - make_interval(days => $3) where id = $1`,
      [id, kind, ago],
    );
    ids.push(id);
  }
  await archiveEvents(app.context);
  return ids;
}

const keepNewest = (newest: number) => ({ kind: 'keep-versions', settings: { newest } });

describe('versions', () => {
  test('that the rule keeps are exported byte for byte; of others, the history is left and says so', async () => {
    const stack = await createStack(app);
    const texts = await importVersions(app, stack, 8);
    expect(await encodeAll(app)).toBe(7);
    await age(stack, 1);
    expect(await sweep()).toBe(0);
    await setRule(app, stack, keepNewest(3));
    expect(await sweep()).toBe(5);
    expect(await readable(stack, 8)).toEqual([6, 7, 8]);
    for (const version of [6, 7, 8]) expect(await exportVersion(app, stack, version)).toBe(texts[version - 1]);
    const gone = await exported(stack, 2);
    expect(gone.status).toBe(404);
    expect(gone.json.message).toContain('The state of version 2 was deleted by a rule keep-versions');
    const { json } = await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
    const updates = json['updates'] as { version: number; stateDeletedAt?: string }[];
    expect(updates.map(({ stateDeletedAt, version }) => [version, stateDeletedAt !== undefined])).toEqual(
      [8, 7, 6, 5, 4, 3, 2, 1].map((version) => [version, version < 6]),
    );
    // Chunks that the kept versions need are left, and no others.
    const [left] = await query(
      app,
      `with recursive needed as (
         select chunk_id as id from checkpoint_chunks union select p.base_id from needed n join version_chunks p on p.id = n.id where p.base_id is not null)
       select (select count(*)::int from version_chunks where id not in (select id from needed)) as useless,
         (select count(*)::int from checkpoints) as checkpoints`,
    );
    expect(left).toEqual({ useless: 0, checkpoints: 3 });
    // Nothing is left to do.
    expect(await sweep()).toBe(0);
  });

  test('stay that someone pinned or used after the listing, or that ended within an hour', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 5);
    await age(stack, 1);
    const stackId = await idOf(stack);
    const listed = await query<{ id: string; state: string }>(
      app,
      'select id, checkpoint_id as state from updates where stack_id = $1 and stack_version < 5 order by stack_version',
      [stackId],
    );
    await query(app, `update updates set pinned_by = 'ada' where stack_id = $1 and stack_version = 1`, [stackId]);
    const ids = listed.map(({ id }) => id);
    await query(app, `update updates set ended_at = now() - interval '59 minutes' where id = $1`, [ids[2]]);
    const { id } = await startUpdate(app, stack);
    await query(app, 'update updates set base_checkpoint_id = $2 where id = $1', [id, listed[3]?.state]);
    const undone = app.context.db.inTransaction(async (tx) => {
      throw await createRetentionRepository(tx).markStates(stackId, ids);
    });
    await expect(undone).rejects.toEqual({ count: 1, checkpointIds: [listed[1]?.state] });
  });

  test('that are the newest, or that a running update needs, stay', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 2);
    await age(stack, 900);
    await setRule(app, stack, { kind: 'keep-versions', settings: { days: 1 } });
    const update = await startUpdate(app, stack);
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 2)).toEqual([2]);
    // The update writes its own state, and still began from the one before.
    await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: JSON.parse(stateOf(3)) }));
    expect(await sweep()).toBe(0);
    expect(await readable(stack, 2)).toEqual([2]);
    await ok(complete(app, update));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 3)).toEqual([3]);
  });

  test('that a preview runs on stay until it has ended', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 1);
    const preview = await startUpdate(app, stack, { kind: 'preview' });
    await importVersion(app, stack, stateOf(9));
    await age(stack, 1);
    await setRule(app, stack, keepNewest(1));
    expect(await sweep()).toBe(0);
    expect(await readable(stack, 2)).toEqual([1, 2]);
    await ok(complete(app, preview));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 2)).toEqual([2]);
    expect(await query(app, 'select 1 from checkpoints where stack_id = $1', [await idOf(stack)])).toHaveLength(1);
  });

  test('that share their state with a kept one stay, and go together', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 2);
    // Nothing is written: versions 3 and 4 have the state of version 2.
    for (let count = 0; count < 2; count++) await ok(complete(app, await startUpdate(app, stack)));
    await age(stack, 1);
    await setRule(app, stack, keepNewest(1));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 4)).toEqual([2, 3, 4]);
    await importVersion(app, stack, stateOf(9));
    await age(stack, 1);
    expect(await sweep()).toBe(3);
    expect(await readable(stack, 5)).toEqual([5]);
    expect(await versionsOf(app, stack)).toHaveLength(1);
  });

  test('that share their state with a pinned one stay', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 2);
    for (let count = 0; count < 2; count++) await ok(complete(app, await startUpdate(app, stack)));
    await importVersion(app, stack, stateOf(9));
    await age(stack, 1);
    const pin = `update updates set pinned_by = 'ada' where stack_id = $1 and stack_version = 3`;
    await query(app, pin, [await idOf(stack)]);
    await setRule(app, stack, keepNewest(1));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 5)).toEqual([2, 3, 4, 5]);
  });

  test('that were pinned after the listing keep the state that they share with deleted ones', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 1);
    for (let count = 0; count < 2; count++) await ok(complete(app, await startUpdate(app, stack)));
    await importVersion(app, stack, stateOf(9));
    await age(stack, 1);
    const stackId = await idOf(stack);
    const listed = await query<{ id: string; state: string }>(
      app,
      'select id, checkpoint_id as state from updates where stack_id = $1 and stack_version < 4 order by stack_version',
      [stackId],
    );
    await query(app, `update updates set pinned_by = 'ada' where stack_id = $1 and stack_version = 2`, [stackId]);
    const ids = listed.map(({ id }) => id);
    const states = [listed[1]?.state as string];
    const unused = await app.context.db.inTransaction(async (tx) => {
      const rows = createRetentionRepository(tx);
      expect(await rows.markStates(stackId, ids)).toEqual({ count: 2, checkpointIds: states });
      return rows.listUnused(stackId, states, ids);
    });
    expect(unused).toEqual([]);
  });

  test('that are pinned stay until they are unpinned, and deleted ones cannot be pinned', async () => {
    const stack = await createStack(app);
    const texts = await importVersions(app, stack, 3);
    await encodeAll(app);
    await age(stack, 1);
    const pin = (method: 'PUT' | 'DELETE', version: number) =>
      app.call(method, `${stack.path}/versions/${version}/pin`, { auth: stack.auth });
    await ok(pin('PUT', 2));
    await setRule(app, stack, keepNewest(1));
    expect(await sweep()).toBe(1);
    expect(await exportVersion(app, stack, 2)).toBe(texts[1]);
    expect((await pin('PUT', 1)).json.message).toContain('The state of version 1 was deleted');
    expect((await pin('PUT', 9)).status).toBe(404);
    await ok(pin('DELETE', 2));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 3)).toEqual([3]);
    const log = await query<{ action: string }>(
      app,
      `select action from audit_events where action like 'version.%' order by occurred_at`,
    );
    expect(log.map(({ action }) => action)).toEqual(['version.pin', 'version.unpin']);
  });

  test('stay if another rule applies by the time of their deletion', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 4);
    await age(stack, 1);
    await setRule(app, stack, keepNewest(1));
    let isChanged = false;
    const db = new Proxy(app.context.db, {
      get(all, name) {
        const method = Reflect.get(all, name) as unknown;
        if (typeof method !== 'function') return method;
        if (name !== 'inTransaction') return method.bind(all);
        return async (...given: unknown[]) => {
          if (!isChanged) await setRule(app, stack, { ...keepNewest(3), project: 'proj' });
          isChanged = true;
          return method.apply(all, given);
        };
      },
    });
    expect(await sweepRetention({ ...app.context, db })).toBe(0);
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 4)).toEqual([2, 3, 4]);
  });

  test('are selected by the most specific rule', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 4);
    await age(stack, 1);
    await setRule(app, stack, keepNewest(1));
    await setRule(app, stack, { ...keepNewest(3), project: 'proj' });
    await setRule(app, stack, { ...keepNewest(2), tag: { name: 'env', value: 'prod' } });
    expect(await sweep()).toBe(1);
    await ok(app.call('PATCH', `${stack.path}/tags`, { auth: stack.auth, body: { env: 'prod' } }));
    expect(await sweep()).toBe(1);
    expect(await readable(stack, 4)).toEqual([3, 4]);
  });
});

describe('events and previews', () => {
  const events = (stack: TestStack, id: string) =>
    app.call('GET', `${stack.path}/update/${id}/events`, { auth: stack.auth });

  test('of updates are deleted after their days, and the history is left and says so', async () => {
    const stack = await createStack(app);
    const ids = await addUpdates(stack, 'update', [40, 31, 29, 1]);
    await setRule(app, stack, { kind: 'keep-events', settings: { days: 30 } });
    expect(await sweep()).toBe(2);
    const found = await Promise.all(ids.map((id) => events(stack, id)));
    expect(found.map(({ status }) => status)).toEqual([404, 404, 200, 200]);
    expect(found[0]?.json.message).toContain('deleted by a rule keep-events');
    expect(found[2]?.json['events']).toHaveLength(3);
    expect(await sweep()).toBe(0);
    // Later ones are found from where the last sweep ended.
    await query(app, `update updates set ended_at = ended_at - interval '3 days' where events_deleted_at is null`);
    expect(await sweep()).toBe(1);
    const { json } = await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
    const updates = json['updates'] as { eventsDeletedAt?: string }[];
    expect(updates.map(({ eventsDeletedAt }) => eventsDeletedAt !== undefined)).toEqual([false, true, true, true]);
  });

  test('previews are deleted after their days, and updates are not', async () => {
    const stack = await createStack(app);
    const previews = await addUpdates(stack, 'preview', [40, 31, 29]);
    const updates = await addUpdates(stack, 'update', [40]);
    await setRule(app, stack, { kind: 'keep-previews', settings: { days: 30 } });
    expect(await sweep()).toBe(2);
    const left = await query<{ id: string }>(app, 'select id from updates where id = any ($1)', [
      [...previews, ...updates],
    ]);
    expect(left.map(({ id }) => id).sort()).toEqual([previews[2], updates[0]].sort());
  });

  test('the preview that last compared the state with reality stays', async () => {
    const stack = await createStack(app);
    const [first, last, failed] = await addUpdates(stack, 'preview', [50, 40, 35]);
    await query(
      app,
      `insert into drift_runs (update_id, stack_id, number, state)
       select id, stack_id, number, case when id = $2 then 'failed' else 'done' end from updates where id = any ($1)`,
      [[first, last, failed], failed],
    );
    await setRule(app, stack, { kind: 'keep-previews', settings: { days: 30 } });
    expect(await sweep()).toBe(2);
    expect(await query(app, 'select id from updates where id = any ($1)', [[first, last, failed]])).toEqual([
      { id: last },
    ]);
  });
});

/** Notes the transaction of each row that is deleted while `work` runs. Returns how many rows of the table each transaction deleted. */
async function countDeleted(table: string, work: () => Promise<unknown>): Promise<readonly number[]> {
  await query(app, 'create table deleted_rows (at xid8 not null)');
  await query(
    app,
    `create function note_deleted_row() returns trigger language plpgsql as
     $$ begin insert into deleted_rows values (pg_current_xact_id()); return null; end $$`,
  );
  await query(app, `create trigger noted after delete on ${table} for each row execute function note_deleted_row()`);
  try {
    await work();
    const counts = await query<{ rows: number }>(app, 'select count(*)::integer as rows from deleted_rows group by at');
    return counts.map(({ rows }) => rows);
  } finally {
    await query(app, `drop trigger noted on ${table}`);
    await query(app, 'drop function note_deleted_row');
    await query(app, 'drop table deleted_rows');
  }
}

const sumOf = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

describe('a transaction, for which others wait,', () => {
  test('releases few chunks of states', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 8);
    await encodeAll(app);
    await age(stack, 1);
    // As of larger states.
    await query(
      app,
      `insert into checkpoint_chunks (checkpoint_id, place, chunk_id)
       select checkpoint_id, 1000 + n, min(chunk_id) from checkpoint_chunks, generate_series(1, 150) n
       where checkpoint_id in (select checkpoint_id from updates where stack_id = $1 and stack_version between 1 and 5)
       group by checkpoint_id, n`,
      [await idOf(stack)],
    );
    await setRule(app, stack, keepNewest(3));
    const counts = await countDeleted('checkpoint_chunks', async () => expect(await sweep()).toBe(5));
    expect(sumOf(counts)).toBeGreaterThan(5 * 150);
    expect(Math.max(...counts)).toBeLessThanOrEqual(400);
    expect(await readable(stack, 8)).toEqual([6, 7, 8]);
  });

  test.each([
    ['updates', 'update', 'keep-events'],
    ['previews', 'preview', 'keep-previews'],
  ] as const)('deletes few segments of events of %s', async (_what, kind, rule) => {
    const stack = await createStack(app);
    const ids = await addUpdates(stack, kind, [44, 43, 42, 41, 40]);
    await query(
      app,
      `insert into event_segments (update_id, first_sequence, last_sequence, event_count, frames, sha256, size_bytes, stored_bytes, codec, inline_bytes)
       select id, 1000 + n, 1000 + n, 1, '[]', '', 1, 1, 'zstd', '' from unnest($1::uuid[]) id, generate_series(1, 150) n`,
      [ids],
    );
    await setRule(app, stack, { kind: rule, settings: { days: 30 } });
    const counts = await countDeleted('event_segments', async () => expect(await sweep()).toBe(5));
    expect(sumOf(counts)).toBeGreaterThan(5 * 150);
    expect(Math.max(...counts)).toBeLessThanOrEqual(400);
  });
});

test('a stack that fails, or is busy, does not hold up the others', async () => {
  const stacks = [await createStack(app), await createStack(app), await createStack(app)];
  for (const stack of stacks) {
    await importVersions(app, stack, 3);
    await age(stack, 1);
    await setRule(app, stack, keepNewest(1));
  }
  const [bad, busy] = stacks as [TestStack, TestStack];
  await query(
    app,
    `create function fail() returns trigger language plpgsql as $$ begin raise 'broken'; end $$;
     create trigger fail before delete on checkpoints for each row when (old.stack_id = '${await idOf(bad)}') execute function fail()`,
  );
  const holder = new pg.Client({ connectionString: app.database.ownerUrl });
  await holder.connect();
  await holder.query('begin');
  await holder.query('select 1 from stacks where id = $1 for update', [await idOf(busy)]);
  expect(await sweep()).toBe(2);
  // What failed is whole.
  expect(await readable(bad, 3)).toEqual([1, 2, 3]);
  expect(await readable(busy, 3)).toEqual([1, 2, 3]);
  expect(await readable(stacks[2] as TestStack, 3)).toEqual([3]);
  await holder.end();
  await query(app, 'drop function fail cascade');
  // They are due at once.
  expect(await sweepRetention(app.context)).toBe(4);
});

test('a sweep that is killed at any statement leaves every version whole or gone, and the next one goes on', async () => {
  const stack = await createStack(app);
  const texts = await importVersions(app, stack, 6);
  await encodeAll(app);
  await age(stack, 1);
  await setRule(app, stack, keepNewest(2));
  for (let at = 1; ; at++) {
    // The connection ends within a transaction, as when the process is killed.
    const isDone = await sweepRetention(dyingAt(app.context, at)).then(
      (count) => count > 0,
      () => false,
    );
    for (let version = 1; version <= 6; version++) {
      const { json, status, text } = await exported(stack, version);
      if (status === 200) expect(text).toBe(texts[version - 1]);
      else expect(json.message).toContain('was deleted by a rule');
      if (version > 4) expect(status).toBe(200);
    }
    const [half] = await query(
      app,
      `select (select count(*)::int from updates where stack_version is not null and state_deleted_at is null and checkpoint_id is null) as lost,
         (select count(*)::int from checkpoints c where not exists (select 1 from updates u where u.checkpoint_id = c.id)
            and not exists (select 1 from stacks s where s.checkpoint_id = c.id)) as orphans`,
    );
    expect(half).toEqual({ lost: 0, orphans: 0 });
    if (isDone) {
      expect(at).toBeGreaterThan(8);
      break;
    }
  }
  expect(await readable(stack, 6)).toEqual([5, 6]);
});

describe('a legal hold', () => {
  const hold = (stack: TestStack, method: 'GET' | 'PUT' | 'DELETE' = 'PUT') =>
    app.call(method, `${stack.path}/legal-hold`, {
      auth: stack.auth,
      ...(method === 'PUT' ? { body: { reason: 'Case 7' } } : {}),
    });

  test('keeps everything, whatever rules say, until it is released', async () => {
    const stack = await createStack(app);
    await importVersions(app, stack, 3);
    await age(stack, 100);
    await ok(hold(stack));
    expect((await ok(hold(stack, 'GET'))).json).toMatchObject({ held: true, reason: 'Case 7' });
    await setRule(app, stack, keepNewest(1));
    expect(await sweep()).toBe(0);
    expect(await readable(stack, 3)).toEqual([1, 2, 3]);
    // A sweep that found the stack before looks again when it deletes.
    const id = await idOf(stack);
    const lock = () => app.context.db.inTransaction((tx) => createUpdateRuleRepository(tx).lockIdleStack(id));
    expect(await lock()).toBeNull();
    await ok(hold(stack, 'DELETE'));
    expect(await lock()).toMatchObject({ id });
    expect((await ok(hold(stack, 'GET'))).json).toEqual({ held: false });
    expect(await sweep()).toBe(2);
    const log = await query<{ action: string }>(
      app,
      `select action from audit_events where action in ('stack.hold', 'stack.release') order by occurred_at`,
    );
    expect(log.map(({ action }) => action)).toEqual(['stack.hold', 'stack.release']);
  });

  test('keeps a stack that is deleted, even where deleted stacks cannot be restored', async () => {
    const stack = await createStack(app);
    const texts = await importVersions(app, stack, 3);
    await ok(hold(stack));
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth }));
    const [row] = await query<{ id: string }>(app, 'select id from stacks where held_at is not null');
    // Not even if the time in which it can be restored was over.
    await query(app, `update stacks set restorable_until = now() - interval '1 day' where id = $1`, [row?.id]);
    await createStackDeletion(app.context)();
    await query(app, `update stacks set restorable_until = now() + interval '1 day' where id = $1`, [row?.id]);
    const { organization } = stack;
    const { data } = await ask(app, stack.auth.slice('token '.length), 'deletedStacks.list', { organization });
    expect(data.items).toMatchObject([{ id: row?.id, isHeld: true }]);
    const path = `/api/orgs/${stack.organization}/deleted-stacks/${row?.id}`;
    const purged = await app.call('DELETE', path, { auth: stack.auth });
    expect([purged.status, purged.json.message]).toEqual([409, expect.stringContaining('under a legal hold')]);
    await ok(app.call('POST', `${path}/restore`, { auth: stack.auth, body: {} }));
    expect(await Promise.all([1, 2, 3].map((version) => exportVersion(app, stack, version)))).toEqual(texts);
    await ok(hold(stack, 'DELETE'));
  });

  test('needs the permission to manage the stack, and a reason', async () => {
    const stack = await createStack(app);
    const member = `token ${await app.createUser(stack.organization, 'member')}`;
    for (const method of ['PUT', 'DELETE'] as const) {
      const refused = await app.call(method, `${stack.path}/legal-hold`, { auth: member, body: { reason: 'x' } });
      expect(refused.status).toBe(403);
    }
    for (const reason of ['', ' ', 'a\nb', 'x'.repeat(501)])
      expect((await app.call('PUT', `${stack.path}/legal-hold`, { auth: stack.auth, body: { reason } })).status).toBe(
        400,
      );
  });
});

test('the initial rule set keeps everything', async () => {
  const stack = await createStack(app);
  await importVersions(app, stack, 3);
  await age(stack, 10_000);
  expect(await sweep()).toBe(0);
  expect(await readable(stack, 3)).toEqual([1, 2, 3]);
});
