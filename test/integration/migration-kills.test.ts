import { readFile, rm } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import pg from 'pg';
import { migrate } from '../../src/shared/platform/db/migrate.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { createEmptyDatabase, type EmptyDatabase } from '../support/empty-database.ts';
import { readMigration } from '../support/migration-file.ts';
import { MigrationFolder, manyStacks, nextMigrations, splitMigrations } from '../support/next-migrations.ts';
import { until } from '../support/until.ts';

const logger = createLogger({ level: 'silent' });

function run(database: EmptyDatabase, { directory }: MigrationFolder): Promise<string[]> {
  return migrate({ url: database.url, connectMs: 30_000, waitMs: 0, logger }, { directory });
}

async function connect(database: EmptyDatabase): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** All that migrations create, as text that two databases can be compared by. */
async function describeSchema(database: EmptyDatabase): Promise<unknown[]> {
  await using client = await connect(database);
  const { rows } = await client.query(`
    with mine as (select oid from pg_class where relnamespace = 'public'::regnamespace)
    select 'column' as kind, attrelid::regclass::text as place, attname || ' ' || format_type(atttypid, atttypmod)
      || case when attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(adbin, adrelid), '') as text
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid in (select oid from mine) and attnum > 0 and not attisdropped
    union all select 'index', indrelid::regclass::text, pg_get_indexdef(indexrelid) || ' ' || indisvalid
    from pg_index where indrelid in (select oid from mine)
    union all select 'constraint', conrelid::regclass::text, conname || ' ' || pg_get_constraintdef(oid) || ' ' || convalidated
    from pg_constraint where conrelid in (select oid from mine)
    union all select 'trigger', tgrelid::regclass::text, pg_get_triggerdef(oid)
    from pg_trigger where not tgisinternal and tgrelid in (select oid from mine)
    union all select 'options', oid::regclass::text, reloptions::text from pg_class where oid in (select oid from mine)
    union all select 'function', oid::regprocedure::text, md5(pg_get_functiondef(oid))
    from pg_proc where pronamespace = 'public'::regnamespace and prokind in ('f', 'p')
    order by 1, 2, 3`);
  return rows;
}

/** Runs the statements up to `last`, and ends the session while that one runs, or after it if it waits for no reader. */
async function runAndKill(database: EmptyDatabase, statements: readonly string[], last: number): Promise<void> {
  await using reader = await connect(database);
  await using admin = await connect(database);
  const client = await connect(database);
  for (const statement of statements.slice(0, last)) await client.query(statement);
  await reader.query('begin isolation level repeatable read; select txid_current()');
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const pid = rows[0]?.pid;
  let isDone = false;
  const running = client
    .query(statements[last] as string)
    .catch(() => {})
    .finally(() => {
      isDone = true;
    });
  await until(async () => {
    if (isDone) return true;
    const waits = await admin.query(`select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`, [pid]);
    return waits.rowCount === 1;
  }, 'the statement ends or waits');
  await admin.query('select pg_terminate_backend($1)', [pid]);
  await running;
  await until(
    async () => (await admin.query('select from pg_stat_activity where pid = $1', [pid])).rowCount === 0,
    'the session ends',
  );
  await reader.query('commit');
  await client.end().catch(() => {});
}

test('each migration that is killed at any statement is completed by the next run', async () => {
  await using database = await createEmptyDatabase();
  await using folder = await MigrationFolder.create();
  const texts = new Map<string, string>();
  for (const name of await MigrationFolder.listBaseline()) {
    texts.set(name, await readFile(folder.pathOf(name), 'utf8'));
    await rm(folder.pathOf(name));
  }
  const baseline = texts.size;
  for (const [name, text] of Object.entries(nextMigrations)) texts.set(name, text);
  let kills = 0;
  for (const [name, text] of texts) {
    // Rows for the batches.
    if (name === Object.keys(nextMigrations)[0]) {
      await using client = await connect(database);
      await client.query(manyStacks);
    }
    await folder.put(name, text);
    const { statements, hasTransaction } = await readMigration(folder.pathOf(name));
    const copies: EmptyDatabase[] = [];
    try {
      if (hasTransaction) {
        await folder.put(name, `${text};\nselect pg_terminate_backend(pg_backend_pid());\n`);
        await expect(run(database, folder)).rejects.toThrow(/Postgres/);
        kills++;
      } else {
        for (const last of statements.keys()) {
          const copy = await createEmptyDatabase(database);
          copies.push(copy);
          await runAndKill(copy, statements, last);
          kills++;
        }
      }
      await folder.put(name, text);
      expect(await run(database, folder)).toEqual([name]);
      const whole = copies.length > 0 ? await describeSchema(database) : null;
      for (const [last, copy] of copies.entries()) {
        expect(await run(copy, folder)).toEqual([name]);
        expect({ name, last, schema: await describeSchema(copy) }).toEqual({ name, last, schema: whole });
      }
    } finally {
      for (const copy of copies) await copy[Symbol.asyncDispose]();
    }
  }
  // Once for each file with a transaction, and once for each statement of the others.
  const parts = Object.values(splitMigrations);
  expect(kills).toBe(baseline - parts.length + parts.reduce((sum, each) => sum + each, 0) + 1 + 2 + 6);
  await using client = await connect(database);
  expect((await client.query('select count(*)::int as n from stack_places')).rows).toEqual([{ n: 1_200 }]);
});
