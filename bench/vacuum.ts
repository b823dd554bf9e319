import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startEmbeddedPostgres } from '../src/shared/platform/db/embedded-postgres.ts';
import { createLogger } from '../src/shared/platform/logger/logger.ts';
import { createDatabase } from './support/databases.ts';
import { loadAverage, printTable } from './support/measures.ts';

/**
 * Whether autovacuum keeps up with journals.
 * Writes entries and deletes them again, as updates and the sweep do, and compares the size of the tables with that of what
 * they contain. Once as migrated, and once with other settings of the tables.
 * Usage: npm run bench vacuum -- [--entries 1000000] [--live 100000] [--naptime 5] [--bytes 400]
 *   [--settings autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_threshold=1000]
 */
const { values } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    /** Entries kept until theirs is the oldest journal. */
    live: { type: 'string', default: '100000' },
    /** Seconds between two looks of autovacuum; a minute by default in Postgres, for times as long as an hour. */
    naptime: { type: 'string', default: '5' },
    bytes: { type: 'string', default: '400' },
    settings: { type: 'string', default: 'autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_threshold=1000' },
  },
});

const entriesPerUpdate = 500;
const batch = 100;
const tables = ['journal_entries', 'journals', 'updates'] as const;

interface Sizes {
  readonly bytes: number;
  readonly dead: number;
  readonly vacuums: number;
}

async function sizesOf(client: pg.Client, table: string): Promise<Sizes> {
  const { rows } = await client.query<{ bytes: string; dead: string; vacuums: string }>(
    `select pg_total_relation_size(relid) as bytes, n_dead_tup as dead, autovacuum_count as vacuums
     from pg_stat_user_tables where relname = $1`,
    [table],
  );
  const [row] = rows;
  return { bytes: Number(row?.bytes), dead: Number(row?.dead), vacuums: Number(row?.vacuums) };
}

/** One update with its whole journal, as the statements of the server write it. */
async function writeJournal(client: pg.Client, stackId: string, entry: string): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    `insert into updates (stack_id, kind, exclusive, status, expires_at) values ($1, 'update', true, 'running', now()) returning id`,
    [stackId],
  );
  const id = rows[0]?.id as string;
  await client.query('insert into journals (update_id, stack_id) values ($1, $2)', [id, stackId]);
  for (let from = 1; from <= entriesPerUpdate; from += batch) {
    await client.query(
      `with added as (
         insert into journal_entries (update_id, sequence_id, entry) select $1, n, $4 from generate_series($2::integer, $3::integer) n returning 1)
       update journals set entry_count = entry_count + (select count(*) from added) where update_id = $1`,
      [id, from, from + batch - 1, entry],
    );
  }
  await client.query(`update updates set status = 'succeeded', ended_at = now() where id = $1`, [id]);
  return id;
}

async function churn(url: string, settings: string[]): Promise<(string | number)[][]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of settings) await client.query(statement);
    await client.query('set synchronous_commit = off');
    const { rows } = await client.query<{ id: string }>(
      `with o as (insert into organizations (name) values ('o') returning id),
         p as (insert into projects (organization_id, name) select id, 'p' from o returning id)
       insert into stacks (project_id, name) select id, 's' from p returning id`,
    );
    const stackId = rows[0]?.id as string;
    const entry = JSON.stringify({ state: 'x'.repeat(Number(values.bytes)) });
    const kept: string[] = [];
    const largest = new Map<string, Sizes>();
    for (let written = 0; written < Number(values.entries); written += entriesPerUpdate) {
      kept.push(await writeJournal(client, stackId, entry));
      if (kept.length * entriesPerUpdate > Number(values.live)) {
        const oldest = kept.shift();
        await client.query('delete from journals where update_id = $1', [oldest]);
        await client.query('delete from journal_entries where update_id = $1', [oldest]);
      }
      if (written % (entriesPerUpdate * 20) !== 0) continue;
      for (const table of tables) {
        const now = await sizesOf(client, table);
        const before = largest.get(table);
        largest.set(table, { ...now, dead: Math.max(now.dead, before?.dead ?? 0) });
      }
    }
    const found = new Map<string, Sizes>();
    for (const table of tables) found.set(table, await sizesOf(client, table));
    await client.query('vacuum full');
    const rowsOf: (string | number)[][] = [];
    for (const [table, { bytes, vacuums }] of found) {
      const packed = (await sizesOf(client, table)).bytes;
      rowsOf.push([
        table,
        bytes / 1e6,
        packed / 1e6,
        bytes / packed,
        String(largest.get(table)?.dead),
        String(vacuums),
      ]);
    }
    return rowsOf;
  } finally {
    await client.end();
  }
}

const home = await mkdtemp(join(tmpdir(), 'holdfast-vacuum-'));
const logger = createLogger({ level: 'warn' });
const postgres = await startEmbeddedPostgres(join(home, 'postgres'), logger, {
  flags: ['-c', `autovacuum_naptime=${values.naptime}s`, '-c', 'max_wal_size=4GB'],
});
try {
  const rows: (string | number)[][] = [];
  for (const name of ['migrated', 'changed']) {
    const url = await createDatabase(postgres.url, name);
    const changed = tables.map((table) => `alter table ${table} set (${values.settings})`);
    const begun = performance.now();
    const measured = await churn(url, name === 'changed' ? changed : []);
    const seconds = (performance.now() - begun) / 1000;
    for (const row of measured) rows.push([name, Math.round(seconds).toString(), ...row]);
  }
  console.log(`${values.entries} entries, ${values.live} of them live, load ${await loadAverage()}\n`);
  printTable(['settings', 's', 'table', 'MB with indexes', 'MB packed', 'ratio', 'dead rows at most', 'vacuums'], rows);
} finally {
  await postgres.stop();
  await rm(home, { recursive: true, force: true });
}
