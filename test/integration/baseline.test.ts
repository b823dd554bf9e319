import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { KeyRing } from '../../src/shared/secrets/key-ring.ts';
import { runAdminCommand } from '../support/admin.ts';
import {
  type BaselineFixture,
  dumpRows,
  fixtureFolder,
  hashMigrations,
  loadRows,
  readFixture,
  renewLeases,
} from '../support/baseline.ts';
import { query } from '../support/database.ts';
import { createEmptyDatabase, type EmptyDatabase } from '../support/empty-database.ts';
import { appRole, asApp } from '../support/global-setup.ts';
import { creation } from '../support/journal-entries.ts';
import { MigrationFolder } from '../support/next-migrations.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append, complete, saveState, saveVerbatim } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook } from '../support/webhooks.ts';

// A database as the first migrations left it, with rows of every kind of work, is what each release has to bring to its schema. The files
// under test/fixtures/baseline were recorded with the migrations that they name.

const isRecording = process.env['HOLDFAST_TEST_RECORD_BASELINE'] === '1';
const logger = createLogger({ level: 'silent' });
const start = (database: EmptyDatabase) => ({ url: database.url, connectMs: 30_000, waitMs: 0, logger });

let fixture: BaselineFixture;
let database: EmptyDatabase;
let app: TestApp;

beforeAll(async () => {
  if (isRecording) await record();
  fixture = await readFixture();
  database = await createEmptyDatabase();
  await using baseline = await MigrationFolder.create(Object.keys(fixture.migrations));
  expect(await migrate(start(database), { appRole, directory: baseline.directory })).toEqual(
    Object.keys(fixture.migrations),
  );
  await loadRows(database.url);
  await renewLeases(database.url);
  await migrate(start(database), { appRole });
  app = await createTestApp({
    database: { url: asApp(database.url), ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    masterKeys: fixture.masterKeys,
    settings: { HOLDFAST_DELETED_STACK_DAYS: '3650' },
  });
});
afterAll(async () => {
  await app?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

test('migrations of the baseline are not edited: a change is a new migration', async () => {
  expect(await hashMigrations(Object.keys(fixture.migrations))).toEqual(fixture.migrations);
});

test('states, histories and events are what they were, byte by byte', async () => {
  const { auth, responses } = fixture;
  expect(Object.keys(responses).length).toBeGreaterThan(8);
  for (const [address, text] of Object.entries(responses))
    expect({ address, text: (await ok(app.call('GET', address, { auth }))).text }).toEqual({ address, text });
});

test('secrets can be decrypted', async () => {
  const { auth, paths, secret } = fixture;
  const { json } = await ok(
    app.call('POST', `${paths.whole}/decrypt`, { auth, body: { ciphertext: secret.ciphertext } }),
  );
  expect(json.plaintext).toBe(secret.plaintext);
});

test('the next update continues the state', async () => {
  const stack = stackAt(fixture.paths.journaled, fixture.auth);
  const before = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json.version as number;
  const update = await startUpdate(app, stack, { journal: true });
  expect(update.version).toBe(before + 1);
  await ok(append(app, update, creation(1, 'later', stack)));
  await ok(complete(app, update));
  const { json } = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
  expect(json.deployment.resources.map(({ urn }: { urn: string }) => urn.split('::').at(-1))).toEqual([
    'later',
    'second',
    'first',
  ]);
});

test('updates that ran during the migration continue under their leases', async () => {
  const { auth, running } = fixture;
  const { documents, journal } = running;
  const namesIn = async (update: RunningUpdate): Promise<unknown[]> => {
    const stack = update.path.split('/').slice(0, -2).join('/');
    const { json } = await ok(app.call('GET', `${stack}/export`, { auth }));
    return json.deployment.resources.map(({ urn }: { urn: string }) => urn.split('::').at(-1));
  };
  const first = await query(app, 'select checkpoint_sequence as number from updates where id = $1', [journal.id]);
  expect(first).toEqual([{ number: -1 }]);
  await ok(saveChange(app, documents, 3, [deployment(2), deployment(3)]));
  await ok(append(app, journal, creation(3, 'after', { project: 'proj', stack: 'journal' })));
  await ok(complete(app, documents));
  await ok(complete(app, journal));
  expect(await namesIn(documents)).toEqual(['r0', 'r1', 'r2']);
  expect(await namesIn(journal)).toEqual(['before', 'after']);
});

test('a deleted stack can be restored', async () => {
  const { auth, paths } = fixture;
  expect((await app.call('GET', `${paths.deleted}/export`, { auth })).status).toBe(404);
  const { organization } = stackAt(paths.deleted, auth);
  const deleted = (...args: string[]) => runAdminCommand(app, 'deleted', ...args, '--organization', organization);
  const [id] = /[0-9a-f-]{36}/.exec((await deleted('list')).stdout) as RegExpExecArray;
  expect(await deleted('restore', id)).toMatchObject({ code: 0 });
  expect((await ok(app.call('GET', `${paths.deleted}/export`, { auth }))).json.deployment.resources).toHaveLength(2);
});

test('the audit log verifies', async () => {
  expect(await runAdminCommand(app, 'audit', 'verify')).toMatchObject({ code: 0 });
});

/** Sends the last document as a delta of the one before. */
function saveChange(on: TestApp, update: RunningUpdate, sequenceNumber: number, documents: readonly object[]) {
  const [before, after] = documents.slice(-2).map((document) => JSON.stringify(document)) as [string, string];
  return on.call('PATCH', `${update.path}/checkpointdelta`, {
    auth: update.lease,
    body: {
      version: 3,
      sequenceNumber,
      checkpointHash: createHash('sha256').update(after).digest('hex'),
      deploymentDelta: [{ Span: { start: { offset: 0 }, end: { offset: before.length } }, NewText: after }],
    },
  });
}

function stackAt(address: string, auth: string): TestStack {
  const [organization, project, stack] = address.split('/').slice(-3) as [string, string, string];
  return { auth, path: address, organization, project, stack };
}

/** Makes the fixture anew: only before a release that has other migrations as its baseline. */
async function record(): Promise<void> {
  const masterKeys = KeyRing.generate();
  await using made = await createEmptyDatabase();
  await migrate(start(made), { appRole });
  const recorded = await createTestApp({
    database: { url: asApp(made.url), ownerUrl: made.url, [Symbol.asyncDispose]: async () => {} },
    masterKeys,
    settings: { HOLDFAST_DELETED_STACK_DAYS: '3650' },
  });
  const content = await fill(recorded);
  await recorded[Symbol.asyncDispose]();
  const migrations = await hashMigrations(await MigrationFolder.listBaseline());
  await mkdir(fixtureFolder, { recursive: true });
  await writeFile(path.join(fixtureFolder, 'data.sql'), await dumpRows(made.url));
  await writeFile(
    path.join(fixtureFolder, 'fixture.json'),
    `${JSON.stringify({ migrations, masterKeys, ...content }, null, 2)}\n`,
  );
}

async function fill(on: TestApp): Promise<Omit<BaselineFixture, 'migrations' | 'masterKeys'>> {
  const whole = await createStack(on);
  const { auth, organization } = whole;
  const add = async (name: string): Promise<TestStack> => {
    await ok(on.call('POST', `/api/stacks/${organization}/proj`, { auth, body: { stackName: name } }));
    return { ...whole, stack: name, path: `/api/stacks/${organization}/proj/${name}` };
  };
  const [journaled, deleted] = [await add('journaled'), await add('deleted')];
  await createHook(on, whole, 'organization', {
    payloadUrl: 'https://hooks.example.com/x',
    secret: 'a secret of a webhook',
  });
  await setRule(on, whole, { kind: 'change-limit', project: 'proj', note: 'careful', settings: { changes: 100 } });

  const startRunning = async (name: 'documents' | 'journal') =>
    startUpdate(on, await add(name), { journal: name === 'journal' });
  const updates: { id: string; path: string }[] = [];
  for (const count of [3, 4]) {
    const update = await startUpdate(on, whole);
    await ok(saveState(on, update, count, `state ${count} `));
    await ok(
      on.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        body: { events: [{ sequence: 0, timestamp: 1, stdoutEvent: { message: `to ${count}`, color: 'never' } }] },
      }),
    );
    await ok(complete(on, update));
    updates.push(update);
  }
  const plaintext = Buffer.from('a configuration secret').toString('base64');
  const { json } = await ok(on.call('POST', `${whole.path}/encrypt`, { auth, body: { plaintext } }));

  for (const [at, name] of ['first', 'second'].entries()) {
    const update = await startUpdate(on, journaled, { journal: true });
    await ok(append(on, update, creation(1, name, journaled)));
    await ok(complete(on, update, at === 0 ? 'succeeded' : 'failed'));
  }
  const last = await startUpdate(on, deleted);
  await ok(saveState(on, last, 2));
  await ok(complete(on, last));
  await ok(on.call('DELETE', `${deleted.path}?force=true`, { auth }));

  const running = { documents: await startRunning('documents'), journal: await startRunning('journal') };
  await ok(saveVerbatim(on, running.documents, 1, deployment(1)));
  await ok(saveChange(on, running.documents, 2, [deployment(1), deployment(2)]));
  await ok(append(on, running.journal, creation(1, 'before', { project: 'proj', stack: 'journal' })));

  const addresses = [
    ...[whole, journaled].flatMap(({ path: at }) => [at, `${at}/export`, `${at}/export/1`, `${at}/updates`]),
    ...updates.map((update) => `${update.path}/events`),
    `/api/orgs/${organization}/hooks`,
    `/api/orgs/${organization}/update-rules`,
  ];
  const responses: Record<string, string> = {};
  for (const address of addresses) responses[address] = (await ok(on.call('GET', address, { auth }))).text;
  return {
    auth,
    paths: { whole: whole.path, journaled: journaled.path, deleted: deleted.path },
    responses,
    running,
    secret: { ciphertext: json.ciphertext, plaintext },
  };
}
