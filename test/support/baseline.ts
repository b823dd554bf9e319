import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { MigrationFolder } from './next-migrations.ts';
import type { RunningUpdate } from './state.ts';

export const fixtureFolder = path.join(import.meta.dirname, '../fixtures/baseline');

/** As clients saw the database. Beside it, `data.sql` has its rows. */
export interface BaselineFixture {
  /** SHA-256 of each migration of the baseline, in order. */
  readonly migrations: Readonly<Record<string, string>>;
  readonly masterKeys: string;
  /** The Authorization header of an admin. */
  readonly auth: string;
  /** Of a deleted stack, too. */
  readonly paths: Readonly<Record<'journaled' | 'whole' | 'deleted', string>>;
  /** Responses to GET requests, by address. */
  readonly responses: Readonly<Record<string, string>>;
  /** Updates that ran when the database was recorded. */
  readonly running: Readonly<Record<'documents' | 'journal', RunningUpdate>>;
  readonly secret: { readonly ciphertext: string; readonly plaintext: string };
}

export async function readFixture(): Promise<BaselineFixture> {
  return JSON.parse(await readFile(path.join(fixtureFolder, 'fixture.json'), 'utf8')) as BaselineFixture;
}

/** SHA-256 of each of these migrations, in order. */
export async function hashMigrations(names: readonly string[]): Promise<Record<string, string>> {
  await using folder = await MigrationFolder.create();
  const hashes: Record<string, string> = {};
  for (const name of names)
    hashes[name] = createHash('sha256')
      .update(await readFile(folder.pathOf(name)))
      .digest('hex');
  return hashes;
}

/** Statements that add all rows to a database with the same schema. Both are used by nobody. */
export async function dumpRows(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows: tables } = await client.query<{ name: string; columns: string }>(`
      select c.relname as name, string_agg(format('%I', a.attname), ', ' order by a.attnum) as columns
      from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        and c.relname not in ('installation', 'holdfast_migrations')
      group by 1 order by 1`);
    const statements: string[] = [];
    for (const { name, columns } of tables) {
      const { rows } = await client.query<{ text: string | null }>(
        `select string_agg(row_to_json(t)::text, E',\\n') as text from (select ${columns} from "${name}") t`,
      );
      const text = rows[0]?.text;
      if (!text) continue;
      if (text.includes('$rows$')) throw new Error(`A row of ${name} cannot be quoted`);
      statements.push(`delete from "${name}";
insert into "${name}" (${columns}) overriding system value
select ${columns} from json_populate_recordset(null::"${name}", $rows$[
${text}]$rows$);`);
    }
    const { rows: sequences } = await client.query<{ name: string; value: string }>(
      `select sequencename as name, last_value as value from pg_sequences where schemaname = 'public' and last_value is not null
         and sequencename not like 'holdfast_migrations%' order by 1`,
    );
    for (const { name, value } of sequences) statements.push(`select setval('"${name}"', ${value});`);
    return `${statements.join('\n')}\n`;
  });
}

/** Adds the rows of the fixture, without triggers. `url`: of the owner, who is a superuser. */
export async function loadRows(url: string): Promise<void> {
  const text = await readFile(path.join(fixtureFolder, 'data.sql'), 'utf8');
  await withClient(url, (client) => client.query(`set session_replication_role = replica;\n${text}`));
}

/** As if the updates of the fixture had been started just before. */
export async function renewLeases(url: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(`update updates set expires_at = clock_timestamp() + interval '5 minutes' where status = 'running'`),
  );
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
