import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { person, team } from '../support/grants.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames, getStack } from '../support/stack-state.ts';
import {
  createStack,
  deployment,
  gzipped,
  ok,
  type RunningUpdate,
  startUpdate,
  type TestStack,
} from '../support/state.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, getUpdate, saveState, saveVerbatim } from '../support/update-calls.ts';

/** Two replicas on one database. */
let database: TestDatabase;
let one: TestApp;
let two: TestApp;
beforeAll(async () => {
  database = await createTestDatabase();
  const settings = { HOLDFAST_ORGANIZATION_CREATION: 'anyone' };
  one = await createTestApp({ database, settings });
  two = await createTestApp({ database, settings, dataDir: one.dataDir });
});
afterAll(async () => {
  await two[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const rounds = 8;
const both = <T>(work: (app: TestApp) => Promise<T>): Promise<[T, T]> => Promise.all([work(one), work(two)]);
const count = (statuses: readonly { status: number }[]) => statuses.map(({ status }) => status).sort();
const createUpdate = (app: TestApp, stack: TestStack) =>
  app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });

describe('with two calls at once', () => {
  test('one create of a stack succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const auth = `token ${await one.createUser('together', 'member')}`;
      const make = (app: TestApp, organization: string) =>
        app.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: `s${round}` } });
      expect(count(await both((app) => make(app, 'together')))).toEqual([200, 409]);
      // The same when the call also creates the organization.
      expect(count(await both((app) => make(app, `fresh-${round}`)))).toEqual([200, 409]);
    }
  });

  test('creates and deletes of stacks for teams succeed beside plain ones', async () => {
    const { auth, organizationId } = await person(one, 'teamed', 'admin');
    await team(one, organizationId, 'blue', []);
    for (let round = 0; round < rounds; round++) {
      const all = (work: (app: TestApp, name: string, teams: string[]) => Promise<{ status: number }>) =>
        Promise.all(
          [0, 1, 2, 3, 4, 5].map((at) => work(at % 2 === 0 ? one : two, `s${at}`, at % 3 === 0 ? [] : ['blue'])),
        );
      const project = `/api/stacks/teamed/p${round}`;
      const made = await all((app, stackName, teams) =>
        app.call('POST', project, { auth, body: { stackName, teams } }),
      );
      expect(count(made)).toEqual([200, 200, 200, 200, 200, 200]);
      const deleted = await all((app, name) => app.call('DELETE', `${project}/${name}`, { auth }));
      expect(count(deleted)).toEqual([204, 204, 204, 204, 204, 204]);
    }
  });

  test('one create of an update succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const stack = await createStack(one);
      const answers = await Promise.all([one, two, one, two].map((app) => createUpdate(app, stack)));
      expect(count(answers)).toEqual([200, 409, 409, 409]);
      const winner = answers.find(({ status }) => status === 200);
      expect((await getStack(two, stack)).activeUpdate).toBe(winner?.json.updateID);
    }
  });

  test('one create succeeds when a lease has expired', async () => {
    for (let round = 0; round < rounds; round++) {
      const stack = await createStack(one);
      await expire(one, (await startUpdate(one, stack)).id);
      const [answers] = await Promise.all([both((app) => createUpdate(app, stack)), expireLeases(two.context)]);
      expect(count(answers)).toEqual([200, 409]);
    }
  });

  test('one start succeeds', async () => {
    for (let round = 0; round < rounds; round++) {
      const stack = await createStack(one);
      const { json } = await ok(createUpdate(one, stack));
      const path = `${stack.path}/update/${json.updateID}`;
      const answers = await both((app) => app.call('POST', path, { auth: stack.auth, body: {} }));
      expect(count(answers)).toEqual([200, 409]);
      const lease = `update-token ${answers.find(({ status }) => status === 200)?.json.token}`;
      await ok(two.call('POST', `${path}/complete`, { auth: lease, body: { status: 'succeeded' } }));
    }
  });

  test('complete and complete both succeed and end the update once', async () => {
    for (let round = 0; round < rounds; round++) {
      const stack = await createStack(one);
      const update = await startUpdate(one, stack, { journal: true });
      await ok(append(one, update, creation(1, 'a', stack)));
      expect(count(await both((app) => complete(app, update)))).toEqual([204, 204]);
      expect((await getStack(one, stack)).version).toBe(1);
      expect(await exportedNames(two, stack)).toEqual(['a']);
    }
  });
});

test('complete and cancel: the first one sets the status, and both callers learn it', async () => {
  const seen = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    const stack = await createStack(one);
    const update = await startUpdate(one, stack, { journal: true });
    await ok(append(one, update, creation(1, 'a', stack)));
    const [completed, cancelled] = await Promise.all([complete(one, update), cancel(two, stack, update)]);
    const { status } = await getUpdate(one, stack, update);
    seen.add(status);
    expect(cancelled.status).toBe(204);
    expect(completed.status).toBe(status === 'succeeded' ? 204 : 403);
    expect(await exportedNames(one, stack)).toEqual(['a']);
    expect((await getStack(one, stack)).activeUpdate).toBe('');
  }
  expect([...seen].filter((status) => status !== 'succeeded' && status !== 'cancelled')).toEqual([]);
  for (const first of ['succeeded', 'cancelled']) {
    const stack = await createStack(one);
    const update = await startUpdate(one, stack, { journal: true });
    const calls = [() => complete(one, update), () => cancel(two, stack, update)];
    if (first === 'cancelled') calls.reverse();
    const statuses: number[] = [];
    for (const call of calls) statuses.push((await call()).status);
    expect({ first, statuses }).toEqual({ first, statuses: first === 'succeeded' ? [204, 204] : [204, 403] });
    expect((await getUpdate(one, stack, update)).status).toBe(first);
  }
});

test('complete and append: an acknowledged entry is in the state', async () => {
  for (let round = 0; round < rounds * 2; round++) {
    const stack = await createStack(one);
    const update = await startUpdate(one, stack, { journal: true });
    await ok(append(one, update, creation(1, 'a', stack)));
    const [completed, late] = await Promise.all([
      complete(one, update),
      append(two, update, creation(3, 'late', stack)),
    ]);
    expect(completed.status).toBe(204);
    expect([204, 403]).toContain(late.status);
    expect(await exportedNames(one, stack)).toEqual(late.status === 204 ? ['a', 'late'] : ['a']);
  }
});

test('import and update: one of them gets the stack', async () => {
  for (let round = 0; round < rounds; round++) {
    const stack = await createStack(one);
    const [imported, created] = await Promise.all([
      one.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(2)) }),
      createUpdate(two, stack),
    ]);
    expect(created.status).toBe(200);
    expect([200, 409]).toContain(imported.status);
    expect(await exportedNames(two, stack)).toHaveLength(imported.status === 200 ? 2 : 0);
    const started = await ok(
      two.call('POST', `${stack.path}/update/${created.json.updateID}`, { auth: stack.auth, body: {} }),
    );
    expect(started.json.version).toBe(imported.status === 200 ? 2 : 1);
  }
});

test('concurrent imports each create a version or change nothing', async () => {
  const stack = await createStack(one);
  const sizes = [1, 2, 3, 4, 5, 6];
  const answers = await Promise.all(
    sizes.map((size) =>
      (size % 2 ? one : two).call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(size) }),
    ),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
  const accepted = sizes.filter((_, index) => statuses[index] === 200);
  expect(accepted.length).toBeGreaterThan(0);
  const versions = [];
  for (let version = 1; version <= accepted.length; version++)
    versions.push((await exportedNames(one, stack, version)).length);
  expect([...versions].sort()).toEqual(accepted);
  expect((await getStack(one, stack)).version).toBe(accepted.length);
  expect(await exportedNames(one, stack)).toHaveLength(versions.at(-1) as number);
});

test('rename and create: the update belongs to the stack wherever it is, or is rejected', async () => {
  for (let round = 0; round < rounds; round++) {
    const stack = await createStack(one);
    const [renamed, created] = await Promise.all([
      one.call('POST', `${stack.path}/rename`, { auth: stack.auth, body: { newName: 'moved' } }),
      createUpdate(two, stack),
    ]);
    expect([204, 409]).toContain(renamed.status);
    expect(created.status === 200 || created.status === 404).toBe(true);
    const path = renamed.status === 204 ? stack.path.replace(/dev$/, 'moved') : stack.path;
    const { json } = await ok(two.call('GET', path, { auth: stack.auth }));
    expect(json.activeUpdate).toBe(created.status === 200 ? created.json.updateID : '');
  }
});

test('a complete run whose every step goes to the other replica', async () => {
  const stack = await createStack(one);
  const updateIds: string[] = [];
  let turn = 0;
  const next = (): TestApp => (turn++ % 2 ? one : two);
  for (let run = 1; run <= 2; run++) {
    const { json } = await ok(createUpdate(next(), stack));
    updateIds.push(json.updateID);
    const path = `${stack.path}/update/${json.updateID}`;
    const started = await ok(next().call('POST', path, { auth: stack.auth, body: { journalVersion: 1 } }));
    const update = { id: json.updateID, path, lease: `update-token ${started.json.token}`, version: run };
    for (let step = 0; step < 3; step++) {
      await ok(append(next(), update, creation(1 + 2 * step, `run${run}-${step}`, stack)));
      expect(await exportedNames(next(), stack)).toHaveLength(step + 1 + 3 * (run - 1));
      const events = { events: [{ sequence: step, timestamp: 1, cancelEvent: {} }] };
      await ok(next().call('POST', `${path}/events/batch`, { auth: update.lease, body: events }));
      await ok(next().call('POST', `${path}/renew_lease`, { auth: update.lease, body: { duration: 300 } }));
    }
    await ok(complete(next(), update));
    expect((await getUpdate(next(), stack, update)).status).toBe('succeeded');
    expect((await getStack(next(), stack)).version).toBe(run);
    const read = await ok(next().call('GET', `${path}/events`, { auth: stack.auth }));
    expect(read.json.events).toHaveLength(3);
  }
  // The answer to `complete` does not wait for the read-back, which marks a journal as compacted.
  const unread = 'select 1 from journals where compacted_at is null and update_id = any($1)';
  await until(async () => (await query(one, unread, [updateIds])).length === 0, 'both journals are marked');
});

describe.each(['cancelled', 'completed', 'expired'])('a lease whose update the other replica saw %s', (how) => {
  const end = async (stack: TestStack, update: RunningUpdate): Promise<void> => {
    if (how === 'cancelled') await ok(cancel(two, stack, update));
    else if (how === 'completed') await ok(complete(two, update));
    else await expire(two, update.id);
  };

  test('no longer writes journal entries or events', async () => {
    const stack = await createStack(one);
    const update = await startUpdate(one, stack, { journal: true });
    const events = (sequence: number) =>
      one.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        body: { events: [{ sequence, timestamp: 1, cancelEvent: {} }] },
      });
    await ok(append(one, update, creation(1, 'kept', stack)));
    await ok(events(0));
    await end(stack, update);
    const late = await Promise.all([
      append(one, update, creation(1, 'kept', stack)),
      append(one, update, creation(3, 'late', stack)),
      append(one, update, []),
      events(0),
      events(1),
    ]);
    expect(count(late)).toEqual([403, 403, 403, 403, 403]);
    expect(await exportedNames(one, stack)).toEqual(['kept']);
    const read = await ok(one.call('GET', `${update.path}/events`, { auth: stack.auth }));
    expect(read.json.events).toHaveLength(1);
  });

  test('no longer writes a checkpoint, not even a repeated one', async () => {
    const stack = await createStack(one);
    const update = await startUpdate(one, stack);
    const base = { version: 3, checkpointHash: 'x', sequenceNumber: 3, deploymentDelta: [] };
    await ok(saveVerbatim(one, update, 1));
    await end(stack, update);
    const late = await Promise.all([
      saveVerbatim(one, update, 1),
      saveVerbatim(one, update, 2, deployment(5)),
      saveState(one, update, 5),
      one.call('PATCH', `${update.path}/checkpointdelta`, { auth: update.lease, body: base }),
    ]);
    expect(count(late)).toEqual([403, 403, 403, 403]);
    expect(await exportedNames(one, stack)).toEqual(['r0']);
  });
});

test('secrets encrypted by one replica are decrypted by the other, starting with the very first', async () => {
  const stack = await createStack(one);
  const [first, second] = await both((app) =>
    ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'QQ==' } })),
  );
  for (const [app, made] of [
    [two, first],
    [one, second],
  ] as const) {
    const body = { ciphertext: made.json.ciphertext };
    expect((await ok(app.call('POST', `${stack.path}/decrypt`, { auth: stack.auth, body }))).json.plaintext).toBe(
      'QQ==',
    );
  }
});
