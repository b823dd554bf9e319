import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/shared/platform/db/embedded-postgres.ts';
import { assertMigrated, migrate } from '../../src/shared/platform/db/migrate.ts';
import type { PostgresBinaries } from '../../src/shared/platform/db/postgres-binaries.ts';
import { findOldBinaries } from '../../src/shared/platform/db/postgres-major.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { runInProcess } from '../support/admin.ts';
import { runBackup } from '../support/backups.ts';
import { loadRows, readFixture } from '../support/baseline.ts';
import { temporaryClusterDir } from '../support/cluster-dir.ts';
import { query } from '../support/database.ts';
import { appRole, asApp, createAppRole, withDatabase } from '../support/global-setup.ts';
import { creation } from '../support/journal-entries.ts';
import { MigrationFolder } from '../support/next-migrations.ts';
import { throwawayFlags } from '../support/shared-postgres.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { append, complete, saveVerbatim } from '../support/update-calls.ts';

// A managed service has no superuser: the owner of the tables owns its database, and has no other right.

const logger = createLogger({ level: 'silent' });
const owner = 'plain_owner';
const earlier = async (major: 15 | 17): Promise<PostgresBinaries> => {
  const tool = `postgres-${major}` as const;
  return findOldBinaries(major, (await ensureToolchain({ only: [tool] }))[tool]);
};
const servers: Readonly<Record<string, () => Promise<PostgresBinaries | null>>> = {
  'Postgres 15': () => earlier(15),
  'Postgres 17': () => earlier(17),
  'the embedded Postgres': async () => null,
};

describe.each(Object.entries(servers))('on %s, an owner without rights beyond its database', (_name, findBinaries) => {
  let home: string;
  let directory: string;
  let postgres: EmbeddedPostgres;

  const asOwner = (database: string): string => {
    const url = new URL(withDatabase(postgres.url, database));
    url.username = owner;
    return url.toString();
  };
  /** Returns the result of the last statement. */
  const asSuperuser = async (database: string, ...statements: string[]): Promise<pg.QueryResult> => {
    const client = new pg.Client({ connectionString: withDatabase(postgres.url, database) });
    await client.connect();
    try {
      for (const statement of statements.slice(0, -1)) await client.query(statement);
      return await client.query(statements.at(-1) as string);
    } finally {
      await client.end();
    }
  };
  const start = (database: string) => ({ url: asOwner(database), connectMs: 30_000, waitMs: 0, logger });
  const open = (name: string, user: (url: string) => string, masterKeys?: string): Promise<TestApp> => {
    const ownerUrl = asOwner(name);
    return createTestApp({
      database: { url: user(ownerUrl), ownerUrl, [Symbol.asyncDispose]: async () => {} },
      dataDir: path.join(home, name),
      ...(masterKeys === undefined ? {} : { masterKeys }),
    });
  };

  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), 'holdfast-managed-'));
    directory = temporaryClusterDir();
    const binaries = await findBinaries();
    postgres = await startEmbeddedPostgres(directory, logger, { flags: throwawayFlags, ...(binaries && { binaries }) });
    await createAppRole(postgres.url);
    const { password } = new URL(postgres.url);
    await asSuperuser(
      'postgres',
      `create role ${owner} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password '${password}'`,
      ...['fresh', 'filled', 'later', 'joined', 'restored'].map((name) => `create database ${name} owner ${owner}`),
    );
    expect(await migrate(start('fresh'), { appRole })).toEqual(await MigrationFolder.listBaseline());
  }, 240_000);
  afterAll(async () => {
    await postgres?.stop();
    for (const folder of [home, directory]) rmSync(folder, { recursive: true, force: true });
  });

  test('owns all that it has created', async () => {
    await using app = await open('fresh', asApp);
    const owners = await query(
      app,
      `select distinct relowner::regrole::text as owner from pg_class where relnamespace = 'public'::regnamespace
       union select distinct proowner::regrole::text from pg_proc where pronamespace = 'public'::regnamespace`,
    );
    expect(owners).toEqual([{ owner }]);
  });

  test('is not concerned with what others keep in its schema', async () => {
    for (const database of ['fresh', 'restored'])
      await asSuperuser(
        database,
        'create extension pg_stat_statements',
        'create table public.foreign_table (id serial primary key, stack_id uuid)',
        'insert into public.foreign_table default values',
        `create function public.foreign_function() returns int language sql as 'select 1'`,
        'revoke execute on function public.foreign_function() from public',
      );
    expect(await migrate(start('fresh'), { appRole })).toEqual([]);
    await assertMigrated(start('fresh'));
    await assertMigrated({ ...start('fresh'), url: asApp(asOwner('fresh')) });
  });

  test('owns what a superuser migrates later', async () => {
    await using next = await MigrationFolder.create();
    await next.putNext();
    const url = withDatabase(postgres.url, 'later');
    await migrate(start('later'));
    expect(await migrate({ ...start('later'), url }, { appRole, directory: next.directory })).toHaveLength(3);
    const app = { ...start('later'), url: asApp(url) };
    await assertMigrated(app);
    const { rows } = await asSuperuser(
      'later',
      `select relname from pg_class where relnamespace = 'public'::regnamespace and relowner <> '${owner}'::regrole`,
    );
    expect(rows).toEqual([]);
  });

  test('owns what its members migrate, with or without inheritance; one that may not act as it is refused', async () => {
    await using next = await MigrationFolder.create();
    await next.putNext();
    await migrate(start('joined'));
    const { password } = new URL(postgres.url);
    const migrateAs = async (user: string, ...grants: string[]) => {
      await asSuperuser('postgres', `create role "${user}" login noinherit password '${password}'`, ...grants);
      const url = new URL(asOwner('joined'));
      url.username = encodeURIComponent(user);
      return migrate({ ...start('joined'), url: url.toString() }, { directory: next.directory });
    };
    const { rows: versions } = await asSuperuser('postgres', 'show server_version_num');
    if (Number(versions[0].server_version_num) >= 160_000)
      await expect(migrateAs('heir', `grant ${owner} to heir with inherit true, set false`)).rejects.toThrow(
        'grant "plain_owner" to "heir" with set true',
      );
    const user = 'Ann@Example.com';
    expect(await migrateAs(user, `grant ${owner} to "${user}"`)).toHaveLength(3);
    const { rows } = await asSuperuser(
      'joined',
      `select relname from pg_class where relnamespace = 'public'::regnamespace and relowner <> '${owner}'::regrole`,
    );
    expect(rows).toEqual([]);
  });

  test.each([
    ['the app role', asApp],
    ['the owner', (url: string) => url],
  ])('lets the server run as %s', async (_role, user) => {
    await using server = await open('fresh', user);
    const stack = await createStack(server);
    const first = await startUpdate(server, stack);
    await ok(saveVerbatim(server, first, 1, deployment(2)));
    await ok(complete(server, first));
    const second = await startUpdate(server, stack, { journal: true });
    await ok(append(server, second, creation(1, 'a', stack)));
    await ok(complete(server, second));
    const { json } = await ok(server.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(json.deployment.resources).toHaveLength(3);
    for (const words of ['admin fsck', 'admin site status', 'admin quotas', 'admin audit verify'])
      expect(await runInProcess(server, ...words.split(' '))).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await runInProcess(server, 'doctor');
    expect(stdout).toContain('Postgres');
    expect(stdout).not.toMatch(/permission|superuser|pg_/);
  });

  test('restores a backup into an empty database', async () => {
    const to = path.join(home, 'backup');
    const from = { databaseUrl: asApp(asOwner('fresh')), dataDir: path.join(home, 'fresh') };
    expect(await runBackup(from, 'create', '--to', to)).toMatchObject({ code: 0, stderr: '' });
    const target = { databaseUrl: asOwner('restored'), dataDir: path.join(home, 'restored') };
    const { code, stderr, stdout } = await runBackup(target, 'restore', '--from', to);
    expect([code, stderr, stdout]).toEqual([0, '', expect.stringContaining('Restored backup')]);
    expect(await migrate(start('restored'), { appRole })).toEqual([]);
  });

  test('notices a table with another owner, which backups would take for somebody else’s', async () => {
    await asSuperuser('fresh', 'alter table updates owner to current_user');
    const message = expect.stringMatching(
      new RegExp(`The table updates belongs to \\w+, .* alter table updates owner to ${owner}$`, 'm'),
    );
    await expect(assertMigrated({ ...start('fresh'), url: asApp(asOwner('fresh')) })).rejects.toMatchObject({
      message,
    });
    const from = { databaseUrl: asOwner('fresh'), dataDir: path.join(home, 'fresh') };
    const made = await runBackup(from, 'create', '--to', path.join(home, 'incomplete'));
    expect(made).toMatchObject({ code: 1, stderr: message });
    await asSuperuser('fresh', `alter table updates owner to ${owner}`);
    await assertMigrated(start('fresh'));
  });

  test('migrates a filled database of the baseline', async () => {
    const { auth, masterKeys, migrations, paths, responses } = await readFixture();
    const old = Object.keys(migrations);
    await using baseline = await MigrationFolder.create(old);
    await migrate(start('filled'), { appRole, directory: baseline.directory });
    // As a superuser: the fixture switches triggers off.
    await loadRows(withDatabase(postgres.url, 'filled'));
    expect([...old, ...(await migrate(start('filled'), { appRole }))]).toEqual(await MigrationFolder.listBaseline());
    await using app = await open('filled', asApp, masterKeys);
    const address = `${paths.whole}/export`;
    expect((await ok(app.call('GET', address, { auth }))).text).toBe(responses[address]);
  });
});
