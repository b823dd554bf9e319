import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { Restoration } from '../../src/cli/backup/restore.ts';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { headsPrefix } from '../../src/shared/audit/audit-hash.ts';
import { createAuditRepository } from '../../src/shared/audit/audit-repository.ts';
import { noEncryption } from '../../src/shared/backup/backup-encryption.ts';
import { type FoundBackup, findBackups, readVerification } from '../../src/shared/backup/backup-list.ts';
import { createBlobHoldRepository } from '../../src/shared/backup/blob-hold-repository.ts';
import { backupKeys, type Manifest, ownerOf, writeManifest } from '../../src/shared/backup/manifest.ts';
import { backUp } from '../../src/shared/backup/run-backup.ts';
import { createTableCopyRepository } from '../../src/shared/backup/table-copy-repository.ts';
import type { BlobStore, PutOptions } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { openDatabase } from '../../src/shared/platform/db/database.ts';
import { migrate, migrationNames } from '../../src/shared/platform/db/migrate.ts';
import { describeLoss } from '../../src/shared/updates/lease-loss.ts';
import { dropOldAudit } from '../../src/workers/audit/audit-retention.ts';
import { storeAuditHeads } from '../../src/workers/audit/chain-audit.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { until } from '../../testkit/until.ts';
import { runAdminCommand } from '../support/admin.ts';
import { damageEach, damageOf, openPlain } from '../support/backup-damage.ts';
import { runBackup } from '../support/backups.ts';
import { letBlobsAge, storedKeys } from '../support/blob-rows.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { createEmptyDatabase } from '../support/empty-database.ts';
import { creation } from '../support/journal-entries.ts';
import { PolicyCalls, smallArchive } from '../support/policy-packs.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, masterKeys, type TestApp, testApp } from '../support/test-app.ts';
import { append, complete } from '../support/update-calls.ts';
import { createHook } from '../support/webhooks.ts';

// An installation with states in rows and in the blob store, history, secrets, events, a policy pack and a running update.

const app = testApp({ settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true', leaseSeconds: 3600 } });
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-backup-'));
const location = path.join(home, 'backups');
let stack: TestStack;
let running: RunningUpdate;
let target: BlobStore;
let manifest: Manifest;

const source = () => ({ databaseUrl: app.database.url, dataDir: app.dataDir });
const exportOf = async (of: TestApp, version?: number) =>
  (await ok(of.call('GET', `${stack.path}/export${version === undefined ? '' : `/${version}`}`, { auth: stack.auth })))
    .text;

async function save(of: TestApp, resources: number, note: string): Promise<void> {
  const update = await startUpdate(of, stack);
  await ok(of.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: deployment(resources, note) }));
  await ok(complete(of, update));
}

beforeAll(async () => {
  stack = await createStack(app);
  await save(app, 3, 'small');
  // Above the size of documents in rows.
  await save(app, 3_000, 'x'.repeat(2_000));
  await save(app, 2_500, 'y'.repeat(2_000));
  await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'c2VjcmV0' } }));
  await new PolicyCalls(app, stack).publish({ archive: smallArchive });
  running = await startUpdate(app, stack, { journal: true });
  await ok(append(app, running, creation(1, 'saved', stack)));
  await chainAll(app);
  const { code, stderr } = await runBackup(source(), 'create', '--to', location);
  expect([code, stderr]).toEqual([0, '']);
  target = await FileBlobStore.open({ directory: location });
  manifest = await openPlain(target);
}, 240_000);
afterAll(async () => {
  await target?.close();
  rmSync(home, { recursive: true, force: true });
});

test('a backup is verified: restored into a temporary Postgres, with all states read', async () => {
  const [backup] = await findBackups(target);
  expect(await readVerification(target, backup as FoundBackup)).toBeNull();
  // Its bytes would stand in for damaged ones of the backup.
  const second = path.join(home, 'second');
  const { code, stdout, stderr } = await runBackup(
    { dataDir: path.join(home, 'nothing'), settings: { HOLDFAST_SECOND_STORE: second } },
    ...['verify', '--from', location],
  );
  expect([code, stderr, existsSync(second)]).toEqual([0, '', false]);
  expect(stdout).toMatch(
    /^Backup \w+ was restored .* [1-9]\d* documents, [1-9]\d* audit events, [1-9]\d* data keys .* no faults\.\n$/,
  );
  const [verified] = await findBackups(target);
  expect(await readVerification(target, verified as FoundBackup)).toBeGreaterThan(Date.now() - 120_000);
}, 120_000);

test('heads of the audit log that are stored during a backup make it no fault', async () => {
  const other = path.join(home, 'heads');
  await using store = await openStore(other);
  let isStored = false;
  const busy = new Proxy(store, {
    get: (_, name: keyof typeof store) =>
      name !== 'put'
        ? Reflect.get(store, name)?.bind?.(store)
        : async (...args: Parameters<BlobStore['put']>) => {
            if (args[0].includes('/tables/') && !isStored) {
              isStored = true;
              for (const organization of [stack.organization, null])
                await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
                  ...{ action: 'stack.tags', organization, object: 'o', details: {} },
                });
              await chainAll(app);
              expect(await storeAuditHeads(app.context)).toBeGreaterThan(0);
            }
            return store.put(...args);
          },
  });
  await backUp({ source: app.context, recipients: [], target: busy });
  expect(isStored).toBe(true);
  const { code, stdout } = await runBackup({ dataDir: path.join(home, 'nothing') }, 'verify', '--from', other);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/ no faults\.\n$/)]);
}, 240_000);

test('heads of the audit log that retention deletes during a backup make it no fault', async () => {
  const other = path.join(home, 'dropped');
  await using store = await openStore(other);
  const organization = 'dropped';
  await app.context.identity.ensureOrganization(organization);
  const month = `(date_trunc('month', now() at time zone 'UTC') - interval '4 months')::date`;
  await query(app, `select add_audit_partition(${month})`);
  // The chain goes on from the last batch that is dropped, whose head stays.
  for (const object of ['older', 'old', 'new']) {
    await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
      ...{ action: 'stack.tags', organization, object, details: {} },
    });
    if (object !== 'new')
      await query(app, `update audit_events set occurred_at = ${month} where object = $1`, [object]);
    await chainAll(app);
    await storeAuditHeads(app.context);
  }
  await backUp({ source: app.context, recipients: [], target: store });
  const { blobs, config } = app.context;
  const retaining = { ...app.context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } };
  let dropped = 0;
  const busy = new Proxy(blobs, {
    get: (_, name: keyof typeof blobs) =>
      name !== 'list'
        ? Reflect.get(blobs, name)?.bind?.(blobs)
        : async (...args: Parameters<BlobStore['list']>) => {
            const page = await blobs.list(...args);
            if (args[0] === headsPrefix && page.next === null) dropped += await dropOldAudit(retaining);
            return page;
          },
  });
  await backUp({ source: { ...app.context, blobs: busy }, recipients: [], target: store });
  expect(dropped).toBe(1);
  const { code, stdout } = await runBackup({ dataDir: path.join(home, 'nothing') }, 'verify', '--from', other);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/ no faults\.\n$/)]);
}, 240_000);

test.each(['/tables/', 'blobs/'])(
  'a backup that is aborted in the middle of an object of %s ends at once',
  async (of) => {
    await using store = await openStore(path.join(home, `aborted ${path.basename(of)}`));
    const shutdown = new AbortController();
    const hung = Promise.withResolvers<void>();
    async function* endless(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of body) {
        yield chunk;
        shutdown.abort(new Error('the server ends'));
        await hung.promise;
      }
    }
    const slow = new Proxy(store, {
      get: (_, name: keyof typeof store) =>
        name !== 'put'
          ? Reflect.get(store, name)?.bind?.(store)
          : (key: string, body: AsyncIterable<Buffer>, options: PutOptions) =>
              store.put(key, key.includes(of) ? endless(body) : body, options),
    });
    const aborted = backUp({ source: app.context, recipients: [], signal: shutdown.signal, target: slow });
    const outcome = aborted.then(
      () => 'completed',
      (error: Error) => error.message,
    );
    const begun = until(() => shutdown.signal.aborted, 'an object that is being stored');
    const late = begun.then(() => setTimeout(60_000, 'hung', { ref: false }));
    expect(await Promise.race([outcome, late])).toBe('the server ends');
    hung.resolve();
    expect((await store.list('backups/')).blobs.filter(({ key }) => key.includes('/tables/'))).toEqual([]);
  },
  240_000,
);

test('with other master keys, the verification fails and says so', async () => {
  const settings = { HOLDFAST_MASTER_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  const { code, stderr, stdout } = await runBackup(
    { dataDir: path.join(home, 'nothing'), settings },
    'verify',
    '--from',
    location,
  );
  expect(code).toBe(1);
  expect(stdout + stderr).toMatch(/master key/i);
}, 120_000);

test('a master key that only a webhook needs is named by the backup, and missed by its verification', async () => {
  const other = path.join(home, 'webhooks');
  const ring = `k0:${randomBytes(32).toString('base64')},${masterKeys}`;
  const database = { url: app.database.url, ownerUrl: app.database.ownerUrl, [Symbol.asyncDispose]: async () => {} };
  await using renewed = await createTestApp({
    ...{ database, dataDir: app.dataDir, masterKeys: ring },
    settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' },
  });
  const hook = await createHook(renewed, stack, 'organization', { payloadUrl: 'https://8.8.8.8/', secret: 'hunter2' });
  await using store = await openStore(other);
  await backUp({ source: renewed.context, recipients: [], target: store });
  await ok(app.call('DELETE', hook, { auth: stack.auth }));
  expect((await openPlain(store)).masterKeys).toEqual(['k0', ...manifest.masterKeys]);
  const { code, stdout } = await runBackup({ dataDir: path.join(home, 'nothing') }, 'verify', '--from', other);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/Secret of webhook .* cannot be decrypted: .*"k0" is not in/),
  ]);
}, 240_000);

test('a backup is restored elsewhere with each byte, and the running update ends with the reason', async () => {
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'restored');
  const restored = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', location);
  expect(restored.stderr).toBe('');
  expect(restored.stdout).toContain(`Restored backup ${manifest.id}`);
  expect(restored.stdout).toContain('Ended 1 update.');
  expect(restored.stdout).toContain('until `holdfast admin take-over`');
  await using copy = await createTestApp({
    database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    dataDir,
    settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' },
  });
  for (const version of [1, 2, 3]) expect(await exportOf(copy, version)).toBe(await exportOf(app, version));
  expect(await query(copy, 'select 1 from installation where outgoing_held_since is not null')).toHaveLength(1);
  const late = await append(copy, running, creation(3, 'late', stack));
  expect([late.status, late.json.message]).toEqual([403, expect.stringContaining(describeLoss('database-restored'))]);
  // Sequences go on, and triggers and foreign keys are there again.
  await save(copy, 2, 'next');
  expect(await exportOf(copy)).toContain('next');
  const schema = `select count(*)::integer as keys from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`;
  expect(await query(copy, schema)).toEqual(await query(app, schema));
  expect(await query(copy, `select tgname from pg_trigger where tgenabled = 'D'`)).toEqual([]);

  const keyless = await runBackup(
    { dataDir: path.join(home, 'keyless'), settings: { HOLDFAST_MASTER_KEYS: '' } },
    ...['restore', '--from', location],
  );
  expect(keyless.stdout).toContain(`The master keys ${manifest.masterKeys.join(', ')} are missing`);

  const again = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', location);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('The database is not empty')]);
}, 240_000);

test('what servers of the old database delete of a restored backup is named by the take-over, and copied again', async () => {
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'deleted');
  const to = { databaseUrl: database.url, dataDir };
  expect(await runBackup(to, 'restore', '--from', location)).toMatchObject({ code: 0 });
  await using copy = await createTestApp({
    database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    dataDir,
    settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' },
  });
  const key = (await storedKeys(copy))[0] as string;
  await copy.context.blobs.delete(key);
  const lacking = await runAdminCommand(copy, 'take-over');
  expect(lacking).toMatchObject({ code: 1, stdout: expect.stringContaining('This database owns the blob store') });
  expect(lacking.stderr).toContain(key);
  expect(lacking.stderr).toContain('1 blobs that states need are missing');
  const copied = await runBackup(to, 'restore', '--from', location, '--blobs-only');
  expect([copied.code, copied.stdout]).toEqual([0, expect.stringContaining('Copied 1 blob of backup')]);
  expect(await runAdminCommand(copy, 'take-over')).toMatchObject({ code: 0 });
  for (const version of [1, 2, 3]) expect(await exportOf(copy, version)).toBe(await exportOf(app, version));
}, 240_000);

test('a restore tells which stacks the old database has in newer versions', async () => {
  await ok(complete(app, running));
  await save(app, 4, 'later');
  const created = await createStack(app);
  await using database = await createEmptyDatabase();
  const to = { databaseUrl: database.url, dataDir: path.join(home, 'compared') };
  const compared = ['--compare-with', app.database.url];
  const { code, stdout } = await runBackup(to, 'restore', '--from', location, '--json', ...compared);
  const { endedUpdates, writtenAfter } = JSON.parse(stdout) as Restoration;
  expect([code, endedUpdates]).toEqual([0, 1]);
  const changedAt = expect.any(String);
  const nameOf = ({ organization, project, stack: name }: TestStack) => `${organization}/${project}/${name}`;
  expect(writtenAfter).toEqual([
    { stack: nameOf(stack), change: 'updated', restoredVersion: 3, oldVersion: 5, changedAt },
    { stack: nameOf(created), change: 'created', restoredVersion: null, oldVersion: 0, changedAt },
  ]);
}, 120_000);

test('a restore that is interrupted by its comparison sends nothing, and is repeated', async () => {
  await using database = await createEmptyDatabase();
  const to = { databaseUrl: database.url, dataDir: path.join(home, 'uncompared') };
  const away = `postgres://user@127.0.0.1:${await findFreePort()}/none`;
  const failed = await runBackup(to, 'restore', '--from', location, '--compare-with', away);
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('ECONNREFUSED')]);
  const held = 'select 1 from installation where outgoing_held_since is not null';
  expect((await withClient(database.url, (client) => client.query(held))).rowCount).toBe(1);
  const repeated = await runBackup(to, 'restore', '--from', location);
  expect([repeated.code, repeated.stderr]).toEqual([0, '']);
}, 120_000);

test('a restore that fails leaves an empty database, and is repeated', async () => {
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'failed');
  const table = manifest.tables.find(({ name }) => name === 'projects') as Manifest['tables'][number];
  const file = await fileOf(table.object.key);
  const bytes = await readFile(file);
  const other = Buffer.from(zstdDecompressSync(bytes).toString('latin1').replace(stack.project, 'prox'), 'latin1');
  for (const damaged of [bytes.subarray(0, bytes.length - 9), zstdCompressSync(other)]) {
    await writeFile(file, damaged);
    const failed = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', location);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(table.object.key)]);
  }
  await writeFile(file, bytes);
  const repeated = await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', location);
  expect([repeated.code, repeated.stderr]).toEqual([0, '']);
}, 240_000);

test('a restore of an older backup loads it before the migrations that it lacks, also when it is repeated', async () => {
  const older = migrationNames().slice(0, -3);
  const other = path.join(home, 'older');
  await using source = await createEmptyDatabase();
  await using database = await createEmptyDatabase();
  await using current = await createEmptyDatabase();
  const start = (url: string) => ({ url, connectMs: 30_000, waitMs: 0, logger: app.context.logger });
  await migrate(start(source.url), { only: older });
  const db = await openDatabase({ ...app.context.config.database, url: source.url, poolSize: 2 });
  await using store = await openStore(other);
  let made: Manifest;
  try {
    await withClient(source.url, (client) => client.query(`insert into organizations (name) values ('old')`));
    made = await backUp({ source: { ...app.context, db }, recipients: [], target: store });
  } finally {
    await db.close();
  }
  expect(made.migrations).toEqual(older);

  const applied = () => withClient(database.url, (client) => createTableCopyRepository(client).listMigrations());
  const restored = (url: string) =>
    runBackup({ databaseUrl: url, dataDir: path.join(home, 'older-data') }, 'restore', '--from', other);
  const [file] = (await listFiles(other)).filter((name) => path.basename(name).endsWith('~tables~organizations.zst'));
  const bytes = await readFile(file as string);
  await writeFile(file as string, bytes.subarray(0, -3));
  for (let attempt = 1; attempt <= 2; attempt++) {
    const failed = await restored(database.url);
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('Table organizations cannot be loaded')]);
    expect(await applied()).toEqual(older);
  }
  await writeFile(file as string, bytes);
  const repeated = await restored(database.url);
  expect([repeated.code, repeated.stderr]).toEqual([0, '']);
  expect(await applied()).toEqual(migrationNames());

  await migrate(start(current.url));
  const refused = await restored(current.url);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/has other migrations.*new database/)]);

  // Both ends of a copy wait for a blob store within a transaction, and the role has the limits that the documentation names.
  await withClient(current.url, async (client) => {
    await client.query(`set idle_in_transaction_session_timeout = '15s'`);
    const copies = createTableCopyRepository(client);
    const begins = [copies.beginSnapshot, () => copies.begin().then(copies.prepareLoad)];
    for (const begin of begins) {
      await begin();
      const { rows } = await client.query('show idle_in_transaction_session_timeout');
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: '0' }]);
      await copies.rollback();
    }
  });
}, 240_000);

test('a load in which a statement has failed does not end well', async () => {
  await withClient(app.database.url, async (client) => {
    const copies = createTableCopyRepository(client);
    await copies.begin();
    await expect(copies.setSequence({ name: 'missing', value: 1 })).rejects.toThrow();
    await expect(copies.end()).rejects.toThrow('The transaction was rolled back');
    await copies.rollback();
  });
});

test('the next backup copies only new blobs, and pruning leaves what the newest needs', async () => {
  const other = path.join(home, 'pruned');
  const create = async () => {
    const { code, stdout } = await runBackup(source(), 'create', '--to', other, '--json');
    expect(code).toBe(0);
    return JSON.parse(stdout) as Manifest;
  };
  const first = await create();
  await using store = await openStore(other);
  const copied = await copiedAt(store);
  const second = await create();
  expect(second.id > first.id).toBe(true);
  expect([...(await copiedAt(store))].filter(([key, at]) => copied.get(key) !== at)).toEqual([]);
  const { stdout } = await runBackup(source(), 'prune', '--from', other, '--keep', '1');
  expect(stdout).toMatch(/^Deleted 1 backup and 0 blobs/);
  expect((await findBackups(store)).map(({ id }) => id)).toEqual([second.id]);
  expect(await damageOf(store)).toEqual([]);
}, 240_000);

test('an interrupted backup is listed as incomplete, never restored, and goes with the next one', async () => {
  const other = path.join(home, 'interrupted');
  await using store = await openStore(other);
  const [{ id } = {}] = await query(app, 'select id from installation');
  await store.put(backupKeys.start('20200101t000000z', ownerOf(String(id))), once(Buffer.from('\n')));
  await store.put(backupKeys.table('20200101t000000z', 'stacks'), once(Buffer.from('half')));
  await store.put(`${backupKeys.blobs}checkpoints/of-nobody`, once(Buffer.from('half')));
  // A prune deletes the first object first.
  await store.put(backupKeys.manifest('20200102t000000z'), once(Buffer.from('{}')));
  const { stdout } = await runBackup(source(), 'list', '--from', other);
  expect(stdout).toBe('20200101t000000z  incomplete\n20200102t000000z  incomplete\n');
  for (const command of ['restore', 'verify']) {
    const { code, stderr } = await runBackup(source(), command, '20200101t000000z', '--from', other);
    expect([code, stderr]).toEqual([1, expect.stringContaining('incomplete')]);
  }
  const created = await runBackup(source(), 'create', '--to', other, '--keep', '3');
  expect(created.stdout).toContain('Deleted 2 backups and 1 blob.');
  expect((await findBackups(store)).map(({ isComplete }) => isComplete)).toEqual([true]);
}, 120_000);

test('a damaged list or manifest of an earlier backup does not hold up the next one, which is whole', async () => {
  const other = path.join(home, 'damaged');
  await using store = await openStore(other);
  for (const damaged of [null, /~blobs~/, /~manifest/]) {
    const names = (await listFiles(other)).filter((file) => damaged?.test(path.basename(file)));
    expect(names.length > 0).toBe(damaged !== null);
    for (const name of names) await writeFile(name, (await readFile(name)).subarray(0, -5));
    const { code, stderr } = await runBackup(source(), 'create', '--to', other);
    expect([code, stderr]).toEqual([0, '']);
    expect(await damageOf(store)).toEqual([]);
  }
  const before = await findBackups(store);
  const { code, stderr, stdout } = await runBackup(source(), 'create', '--to', other, '--keep', '3', '--json');
  const created = (await findBackups(store)).filter(({ id }) => !before.some((each) => each.id === id));
  expect(created).toHaveLength(1);
  expect([code, JSON.parse(stdout).id]).toEqual([1, created[0]?.id]);
  const damaged = before.at(-2)?.id;
  expect(stderr).toContain(`Nothing was pruned, because backup ${damaged} must be kept and cannot be read`);
}, 120_000);

test('while a backup is made, no blob becomes due for deletion', async () => {
  await query(
    app,
    `insert into blob_holds (held_until, ends_at) values (now() + interval '1 minute', now() + interval '1 hour')`,
  );
  const temporary = await startUpdate(app, await createStack(app));
  await ok(
    app.call('PATCH', `${temporary.path}/checkpoint`, {
      auth: temporary.lease,
      body: deployment(3_000, 'z'.repeat(2_000)),
    }),
  );
  await ok(
    app.call('PATCH', `${temporary.path}/checkpoint`, {
      auth: temporary.lease,
      body: deployment(3_000, 'w'.repeat(2_000)),
    }),
  );
  const before = await storedKeys(app);
  await letBlobsAge(app);
  await sweepBlobs(app.context);
  expect(await storedKeys(app)).toEqual(before);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  await sweepBlobs(app.context);
  expect((await storedKeys(app)).length).toBeLessThan(before.length);
});

test('holds of backups that ended without removing them are removed by the next', async () => {
  const holds = createBlobHoldRepository(app.context.db);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  const id = await holds.insert(60, 90);
  expect(await query(app, 'select id from blob_holds')).toEqual([{ id }]);
  expect(await holds.renew(id, 3_600)).toBe(true);
  const left = `select extract(epoch from held_until - now())::integer as seconds from blob_holds`;
  expect((await query<{ seconds: number }>(app, left))[0]?.seconds).toBeLessThanOrEqual(90);
  await query(app, `update blob_holds set held_until = now() - interval '1 second'`);
  expect(await holds.renew(id, 60)).toBe(false);
  await holds.delete(id);
});

test('each damaged, missing, cut, reordered or exchanged object of a backup is found and named', async () => {
  const other = path.join(home, 'other');
  expect((await runBackup(source(), 'create', '--to', other)).code).toBe(0);
  await using store = await openStore(other);
  const found = await damageEach(target, manifest, { other: { store, manifest: await openPlain(store) }, perKind: 16 });
  expect(found.filter(({ isNamed }) => !isNamed)).toEqual([]);
  expect(found.length).toBeGreaterThanOrEqual(100);
  expect(await damageOf(target)).toEqual([]);
}, 240_000);

test('a changed manifest with a matching hash is found when the backup is verified', async () => {
  const changes: Record<string, (whole: Manifest) => Partial<Manifest>> = {
    'no copy of the table stacks': ({ tables }) => ({ tables: tables.filter(({ name }) => name !== 'stacks') }),
    'the manifest says 4711': ({ tables }) => ({
      tables: tables.map((table) => (table.name === 'updates' ? { ...table, rows: 4711 } : table)),
    }),
    'The lists have': ({ blobLists }) => ({ blobLists: blobLists.slice(1) }),
    'is the manifest of backup 2020': () => ({ id: '20200101t000000000z' }),
  };
  await target.delete(backupKeys.verified(manifest.id));
  for (const [named, change] of Object.entries(changes)) {
    const changed = { ...manifest, ...change(manifest) };
    await target.put(backupKeys.manifest(manifest.id), once(await writeManifest(changed, noEncryption.encrypt)));
    const { code, stderr, stdout } = await runBackup(source(), 'verify', '--from', location);
    expect([code, stderr + stdout]).toEqual([1, expect.stringContaining(named)]);
  }
  expect(await target.stat(backupKeys.verified(manifest.id))).toBeNull();
  await target.put(backupKeys.manifest(manifest.id), once(await writeManifest(manifest, noEncryption.encrypt)));
}, 240_000);

test('a backup under writers restores each write that was acknowledged before it, byte for byte', async () => {
  const stacks = await Promise.all(Array.from({ length: 8 }, () => createStack(app)));
  let isEnding = false;
  const acknowledged = stacks.map(() => 0);
  const write = async (at: number): Promise<void> => {
    const { auth, path: stackPath } = stacks[at] as TestStack;
    while (!isEnding) {
      const body = deployment(3, `write ${Number(acknowledged[at]) + 1}`);
      await ok(app.call('POST', `${stackPath}/import`, { auth, body }));
      acknowledged[at] = Number(acknowledged[at]) + 1;
    }
  };
  const writing = stacks.map((_, at) => write(at));
  await until(() => acknowledged.every((count) => count > 0), 'each stack has a version');
  const before = [...acknowledged];
  const under = path.join(home, 'under-writers');
  expect((await runBackup(source(), 'create', '--to', under)).code).toBe(0);
  isEnding = true;
  await Promise.all(writing);
  await using database = await createEmptyDatabase();
  const dataDir = path.join(home, 'written');
  expect((await runBackup({ databaseUrl: database.url, dataDir }, 'restore', '--from', under)).code).toBe(0);
  await using copy = await createTestApp({
    database: { url: database.url, ownerUrl: database.url, [Symbol.asyncDispose]: async () => {} },
    dataDir,
    settings: { HOLDFAST_ENCRYPT_DOCUMENTS: 'true' },
  });
  for (const [at, { auth, path: stackPath }] of stacks.entries()) {
    const restored = await ok(copy.call('GET', `${stackPath}/export`, { auth }));
    const version = Number(/write (\d+)0"/.exec(restored.text)?.[1]);
    expect(version).toBeGreaterThanOrEqual(before[at] as number);
    expect(restored.text).toBe((await ok(app.call('GET', `${stackPath}/export/${version}`, { auth }))).text);
  }
}, 240_000);

test('commands that only read do not create the folder', async () => {
  const nowhere = path.join(home, 'nowhere');
  for (const command of ['list', 'verify', 'restore'])
    expect(await runBackup(source(), command, '--from', nowhere)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There are no backups in'),
    });
  expect(existsSync(nowhere)).toBe(false);
});

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

async function openStore(directory: string): Promise<FileBlobStore & AsyncDisposable> {
  const store = await FileBlobStore.open({ directory });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

async function copiedAt(store: BlobStore): Promise<Map<string, number>> {
  const { blobs } = await store.list(backupKeys.blobs);
  expect(blobs.length).toBeGreaterThan(1);
  return new Map(blobs.map(({ key, modifiedAt }) => [key, modifiedAt.getTime()]));
}

async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(path.join(directory, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/** The file of an object of the backup. */
async function fileOf(key: string): Promise<string> {
  const name = key.replaceAll('/', '~');
  return (await listFiles(location)).find((file) => path.basename(file) === name) as string;
}
