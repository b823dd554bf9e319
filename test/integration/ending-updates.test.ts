import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isFirst } from '../../src/shared/platform/db/connection-gate.ts';
import { holdInserts, query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { sentStatements } from '../support/sent-statements.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';
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
      'updates.findInStack',
      ...['journals.claim', 'checkpoints.find', 'journalEntries.readPage', 'checkpoints.commitCompaction'],
      'updates.complete',
      // In the background.
      ...['journals.claim', 'checkpoints.find', 'journals.markCompacted'],
    ].toSorted(),
  );
  expect(await exportedNames(app, stack)).toEqual(['new', 'r0', 'r1']);
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

test('the audit log says the same of an update that one statement has ended', async () => {
  const update = await journaledUpdate();
  await ok(complete(app, update));
  const plain = await startUpdate(app, stack, { journal: true });
  await ok(append(app, plain, creation(1, 'other', stack)));
  const { auth } = stack;
  const { json } = await ok(app.call('POST', `${stack.path}/encrypt`, { auth, body: { plaintext: '' } }));
  await ok(app.call('POST', `${stack.path}/decrypt`, { auth, body: { ciphertext: json.ciphertext } }));
  // Secrets were read, so this one ends in a transaction of several statements.
  await ok(complete(app, plain));
  const event = `select action, organization, object, outcome, actor, user_id, login, token_id, token_name, sign_in, role, granted_by,
    ci_run, organization_id, details::jsonb - 'stackVersion' as details from audit_events where update_id = $1 and action = 'update.end'`;
  const [atOnce] = await query(app, event, [update.id]);
  expect(atOnce).toMatchObject({ details: { journalEntries: 2, checkpoints: 0, kind: 'update', status: 'succeeded' } });
  expect(await query(app, event, [plain.id])).toEqual([atOnce]);
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
  const begun = [noteOrder(db, 'maybeOne', 'updates.create'), noteOrder(db, 'maybeOne', 'updates.startAtOnce')];
  const ended = noteOrder(db, 'maybeOne', 'updates.complete');
  const update = await journaledUpdate();
  expect({ appended, begun }).toEqual({ appended: [false], begun: [[true], [true]] });
  // Of the new stack and the import.
  expect(transactions).toContain(false);
  expect(transactions).not.toContain(true);
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
