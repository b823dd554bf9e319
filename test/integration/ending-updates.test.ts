import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Type } from 'typebox';
import { serverSource } from '../../src/shared/audit/audit-event.ts';
import { isFirst } from '../../src/shared/platform/db/connection-gate.ts';
import { sql } from '../../src/shared/platform/db/sql.ts';
import { expireUpdate } from '../../src/shared/updates/cancel-or-expire.ts';
import { createLockedUpdateRepository } from '../../src/shared/updates/locked-update-repository.ts';
import { holdInserts, query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp, type TestResponse } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete } from '../support/update-calls.ts';
import { head, WireServer } from '../support/wire.ts';

let app: TestApp;
let stack: TestStack;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
});

/** A stack with a state, and an update of it with entries in its journal. */
async function journaledUpdate() {
  stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'new', stack)));
  return update;
}

async function readBack(updateId: string): Promise<void> {
  const read = `select 1 from journals where update_id = $1 and compacted_at is not null and compaction_claim is null`;
  await until(async () => (await query(app, read, [updateId])).length === 1, 'the state was read back');
}

test('a journaled update ends with few statements', async () => {
  const update = await journaledUpdate();
  const names = await sentStatements(async () => {
    await ok(complete(app, update));
    await readBack(update.id);
  });
  expect(names.toSorted()).toEqual(
    [
      ...['journals.claim', 'checkpoints.commitCompaction', 'updates.complete'],
      // Beside the claim.
      'updates.find',
      // In the background.
      ...['journals.claim', 'journals.markCompacted'],
    ].toSorted(),
  );
  expect(await exportedNames(app, stack)).toEqual(['new', 'r0', 'r1']);
});

/** While no worker takes compactions. */
async function withoutWorkers(call: () => Promise<TestResponse>): Promise<TestResponse> {
  const { compactor } = app.context;
  const compact = compactor.compact.bind(compactor);
  const { promise: waiting, reject } = Promise.withResolvers<never>();
  waiting.catch(() => {});
  compactor.compact = () => waiting;
  try {
    return await call();
  } finally {
    compactor.compact = compact;
    reject(new Error('No worker came'));
  }
}

test('an update whose entries are all in its state ends without a worker', async () => {
  const update = await journaledUpdate();
  await app.context.compactor.compact(update.id);
  await ok(withoutWorkers(() => complete(app, update)));
  expect(await exportedNames(app, stack)).toEqual(['new', 'r0', 'r1']);
});

test('entries of a batch that is committed while the journal is claimed are part of the state', async () => {
  const update = await journaledUpdate();
  const client = new pg.Client({ connectionString: app.database.ownerUrl });
  await client.connect();
  try {
    await client.query('begin');
    for (const [at, entry] of creation(3, 'late', stack).entries())
      await client.query('insert into journal_entries values ($1, $2, $3)', [update.id, 3 + at, JSON.stringify(entry)]);
    await client.query('update journals set entry_count = entry_count + 2 where update_id = $1', [update.id]);
    const names = await sentStatements(async () => {
      const ending = complete(app, update);
      const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      await until(async () => (await query(app, waiting, [])).length > 0, 'the claim waits');
      await client.query('commit');
      await ok(ending);
    }, /^(journalEntries|checkpoints\.commit)/);
    // The page of the claim is from before the batch, unless the claim was repeated.
    expect(names.filter((name) => name !== 'journalEntries.readPage')[0]).toBe('checkpoints.commitCompaction');
  } finally {
    await client.end();
  }
  expect(await exportedNames(app, stack)).toEqual(['new', 'late', 'r0', 'r1']);
});

describe('a call with a lease that this process knows and that has ended', () => {
  const lost = { code: 403, message: expect.stringMatching(/^The lease of this update is no longer valid/) };
  const invalid = { code: 400, message: expect.anything() };
  const bodies = { 'no valid body': { status: 'unknown' }, 'an empty body': '', 'no JSON': '{' };

  test.each(Object.entries(bodies))('is told so although it has %s', async (_, body) => {
    const update = await journaledUpdate();
    const send = () => app.call('POST', `${update.path}/complete`, { auth: update.lease, body });
    expect((await send()).json).toMatchObject(invalid);
    await query(app, `update updates set expires_at = now() where id = $1`, [update.id]);
    expect((await send()).json).toEqual(lost);
  });

  test.each(['succeeded', 'failed', 'cancelled'])(
    'is told so when it ends as %s what was cancelled',
    async (status) => {
      const update = await journaledUpdate();
      await ok(cancel(app, stack, update));
      expect((await withoutWorkers(() => complete(app, update, status))).json).toEqual(lost);
    },
  );

  test.each(['succeeded', 'cancelled'])('is told why when it ends as %s what was revoked', async (status) => {
    const update = await journaledUpdate();
    await query(
      app,
      'update api_tokens set revoked_at = now() where id = (select token_id from updates where id = $1)',
      [update.id],
    );
    await expireUpdate(app.context.db, update.id);
    const { json } = await withoutWorkers(() => complete(app, update, status));
    expect(json).toMatchObject({
      code: 403,
      message: expect.stringMatching(/^This update was cancelled: the API token/),
    });
  });

  test('succeeds if it repeats one that another process has answered', async () => {
    const update = await journaledUpdate();
    await app.context.compactor.compact(update.id);
    await query(app, `select complete_update($1, 1, 'succeeded', null, null, false)`, [update.id]);
    expect((await withoutWorkers(() => complete(app, update))).status).toBe(204);
    expect((await withoutWorkers(() => complete(app, update, 'failed'))).json).toEqual(lost);
  });

  test('is repeated without a compaction', async () => {
    const update = await journaledUpdate();
    await ok(complete(app, update));
    await readBack(update.id);
    const names = await sentStatements(() => ok(complete(app, update)));
    expect(names.slice(0, 2)).toEqual(['updates.findInStack', 'updates.complete']);
  });
});

test('the statements in functions and triggers of an update are planned once, all others as usual', async () => {
  const modes = 'plan_modes';
  await query(app, `create table ${modes} (mode text)`, []);
  await query(
    app,
    `create function note_plan_mode() returns trigger language plpgsql as $$
     begin insert into ${modes} values (current_setting('plan_cache_mode')); return null; end $$`,
    [],
  );
  await query(
    app,
    `create trigger updates_note_plan_mode after update of status, checkpoint_id on updates
     for each row when (new.journal_version > 0) execute function note_plan_mode()`,
    [],
  );
  try {
    const update = await journaledUpdate();
    await ok(complete(app, update));
    await readBack(update.id);
    // The start, the commit of the compaction, the end.
    expect(await query(app, `select mode from ${modes}`, [])).toEqual(Array(3).fill({ mode: 'force_generic_plan' }));
    const setting = sql.rows(Type.Object({ mode: Type.String() }));
    const mode = () => app.context.db.oneFirst(setting`select current_setting('plan_cache_mode') as mode`);
    expect(new Set(await Promise.all(Array.from({ length: 10 }, mode)))).toEqual(new Set(['auto']));
  } finally {
    await query(app, 'drop trigger updates_note_plan_mode on updates', []);
  }
});

test('the statements that follow in the same transaction are planned as usual', async () => {
  const setting = sql.rows(Type.Object({ mode: Type.String() }));
  const mode = await app.context.db.inTransaction(async (tx) => {
    const ended = { id: randomUUID(), epoch: 1, seen: null, status: 'succeeded', knowsOutputs: false } as const;
    await createLockedUpdateRepository(tx).complete(ended, serverSource, 'update.end');
    return tx.oneFirst(setting`select current_setting('plan_cache_mode') as mode`);
  });
  expect(mode).toBe('auto');
});

test('entries that arrive after the compaction are compacted before the update ends', async () => {
  const update = await journaledUpdate();
  const { compactor } = app.context;
  const compact = compactor.compact.bind(compactor);
  const statuses: unknown[] = [];
  compactor.compact = async (updateId) => {
    statuses.push(...(await query(app, 'select status from updates where id = $1', [updateId])));
    await compact(updateId);
    if (statuses.length === 1) await ok(append(app, update, creation(3, 'late', stack)));
  };
  try {
    await ok(complete(app, update));
    await readBack(update.id);
  } finally {
    compactor.compact = compact;
  }
  expect(statuses).toEqual([{ status: 'running' }, { status: 'running' }, { status: 'succeeded' }]);
  expect(await exportedNames(app, stack)).toContain('late');
});

test('the audit log says how an update has ended, whether or not it has read secrets', async () => {
  const update = await journaledUpdate();
  await ok(complete(app, update));
  const plain = await startUpdate(app, stack, { journal: true });
  await ok(append(app, plain, creation(1, 'other', stack)));
  const { auth } = stack;
  const { json } = await ok(app.call('POST', `${stack.path}/encrypt`, { auth, body: { plaintext: '' } }));
  await ok(app.call('POST', `${stack.path}/decrypt`, { auth, body: { ciphertext: json.ciphertext } }));
  await ok(complete(app, plain));
  const event = `select action, organization, object, outcome, actor, user_id, login, token_id, token_name, sign_in, role, granted_by,
    ci_run, organization_id, details::jsonb - 'stackVersion' as details from audit_events where update_id = $1 and action = 'update.end'`;
  const [atOnce] = await query(app, event, [update.id]);
  expect(atOnce).toMatchObject({ details: { journalEntries: 2, checkpoints: 0, kind: 'update', status: 'succeeded' } });
  expect(await query(app, event, [plain.id])).toEqual([atOnce]);
});

describe('what a call that completes an update does', () => {
  const statuses = ['succeeded', 'failed', 'cancelled'] as const;
  const outcomes: Record<string, readonly string[]> = {
    'not started': ['lease-lost', 'lease-lost', 'lease-lost'],
    running: ['ended', 'ended', 'ended'],
    succeeded: ['repeated', 'lease-lost', 'lease-lost'],
    failed: ['lease-lost', 'repeated', 'lease-lost'],
    cancelled: ['lease-lost', 'lease-lost', 'repeated'],
  };
  test.each(Object.keys(outcomes))('while that is %s', async (status) => {
    const update = await startUpdate(app, await createStack(app));
    const client = new pg.Client({ connectionString: app.database.ownerUrl });
    await client.connect();
    const found: string[] = [];
    for (const newStatus of statuses) {
      await client.query('begin');
      await client.query('update updates set status = $2 where id = $1', [update.id, status]);
      const call = 'select outcome from complete_update($1, 1, $2, null, null, false)';
      const { rows } = await client.query<{ outcome: string }>(call, [update.id, newStatus]);
      const after = await client.query<{ status: string }>('select status from updates where id = $1', [update.id]);
      found.push(...rows.map(({ outcome }) => outcome));
      expect(after.rows).toEqual([{ status: rows[0]?.outcome === 'ended' ? newStatus : status }]);
      await client.query('rollback');
    }
    await client.end();
    expect(found).toEqual(outcomes[status]);
  });
});

test('a read of secrets that is committed while the update ends is in the log', async () => {
  const update = await journaledUpdate();
  const { auth } = stack;
  const { json } = await ok(app.call('POST', `${stack.path}/encrypt`, { auth, body: { plaintext: '' } }));
  await using gate = await holdInserts(app, 'audit_secret_reads');
  const reading = app.call('POST', `${stack.path}/decrypt`, { auth, body: { ciphertext: json.ciphertext } });
  await gate.reached(1);
  const ending = complete(app, update);
  await gate.reached(2);
  await gate.release();
  await Promise.all([ok(reading), ok(ending)]);
  const events = `select action from audit_events where update_id = $1 and action in ('secret.decrypt', 'update.end') order by number`;
  expect(await query(app, events, [update.id])).toEqual([{ action: 'secret.decrypt' }, { action: 'update.end' }]);
  expect(await query(app, 'select 1 from audit_secret_reads where update_id = $1', [update.id])).toEqual([]);
});

/** Records of each call of a method, or of those with the statement `name`, whether it goes first. */
function noteOrder<T extends object>(object: T, method: keyof T & string, name?: string): boolean[] {
  const noted: boolean[] = [];
  const original = object[method] as (...args: unknown[]) => unknown;
  const noting = (...args: unknown[]): unknown => {
    if (name === undefined || (args[0] as { sql: string }).sql.includes(`/* ${name} */`)) noted.push(isFirst());
    return original.apply(object, args);
  };
  Object.defineProperty(object, method, { value: noting, configurable: true });
  return noted;
}

test('the calls that begin, renew and end an update go first, and the compaction they wait for', async () => {
  const { compactor, db, journal, updates } = app.context;
  const appended = noteOrder(journal, 'append');
  const compacted = noteOrder(compactor, 'compact');
  const renewed = noteOrder(updates, 'renewLease');
  const transactions = noteOrder(db, 'inTransaction');
  const started = noteOrder(db, 'one', 'updates.start');
  const ended = noteOrder(db, 'one', 'updates.complete');
  const update = await journaledUpdate();
  expect({ appended, started }).toEqual({ appended: [false], started: [true] });
  // Those of the new stack and the import do not go first, that of the new update does.
  expect(transactions.slice(0, -1)).not.toContain(true);
  expect(transactions.at(-1)).toBe(true);
  // Over a socket, where a body that comes later does so in another context than its request.
  const server = await WireServer.listen(app);
  const post = async (call: string, content: object) => {
    const body = JSON.stringify(content);
    const headers = {
      accept: 'application/vnd.pulumi+8',
      authorization: update.lease,
      'content-type': 'application/json',
    };
    const connection = server.connect();
    await connection.write(
      head('POST', `${update.path}/${call}`, { headers: { ...headers, expect: '100-continue' }, length: body.length }),
    );
    expect(await connection.interim()).toBe(100);
    await connection.write(body);
    return connection.answer();
  };
  expect(await post('renew_lease', { duration: 60 })).toMatchObject({ status: 200 });
  transactions.length = 0;
  expect(await post('complete', { status: 'succeeded' })).toMatchObject({ status: 204 });
  await readBack(update.id);
  expect({ renewed, compacted, ended, transactions }).toEqual({
    renewed: [true],
    compacted: [true, false],
    ended: [true],
    transactions: [],
  });
});
