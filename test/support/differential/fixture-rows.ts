import type pg from 'pg';
import type { SeededFixture } from './seeded-fixture.ts';

type Queries = pg.Client | pg.Pool;

/** Tables that are kept in the background. */
const others =
  '^(update_queue_processes|update_queue_waiters|update_limits|update_limit_changes|state_index|stack_resources|resource_changes|version_changes|audit_chains|audit_chaining|audit_batches|maintenance_runs|master_keys|installation|pgmigrations|project_day|rate_counters|failed_lookups)';

/** Columns that say when a row was written, in which order, how long something took, or what is encrypted or random. */
const passing = new Set([
  ...['number', 'updated_at', 'last_used_at', 'request_id', 'sha256', 'inline_bytes', 'stored_bytes', 'lease_hash'],
  ...[
    'compaction_claim',
    'compaction_claimed_until',
    'next_compaction_at',
    'compaction_attempts',
    'run_ms',
    'longest_ms',
    'longest_id',
    'repeat_key',
  ],
]);

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const timeInText = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const time = /^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/;

/**
 * All rows of all tables as lines of text, in which new ids and times have names that are the same in a copy of the database to which
 * the same has happened. `before` has the ids and times of the database that was copied.
 */
export async function readRows(client: Queries, before: ReadonlySet<string>): Promise<string[]> {
  const names = await nameUpdates(client, before);
  const lines = await readTables(
    client,
    (table, row) => `${table} ${JSON.stringify(plain(row, { before, names, table }))}`,
  );
  return lines.sort();
}

/** All ids and times in the database. */
export async function readConstants(client: Queries): Promise<ReadonlySet<string>> {
  const constants = new Set<string>();
  await readTables(client, (_, row) => {
    const text = JSON.stringify(row);
    for (const [id] of text.matchAll(uuid)) constants.add(id);
    for (const [, value] of text.matchAll(/"(\d{4}-\d\d-\d\dT[\d:.]+\+00:00)"/g)) constants.add(value as string);
    return '';
  });
  return constants;
}

/** What only one of two databases has, by the name of its fixture. */
export function differingRows(left: readonly string[], right: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of left) counts.set(line, (counts.get(line) ?? 0) + 1);
  for (const line of right) counts.set(line, (counts.get(line) ?? 0) - 1);
  return [...counts].flatMap(([line, count]) =>
    Array.from({ length: Math.abs(count) }, () => `${count > 0 ? '-' : '+'} ${line}`),
  );
}

/** Replaces the ids of fixtures by their names. */
export function nameFixtures(lines: readonly string[], fixtures: readonly SeededFixture[]): string[] {
  const names = new Map<string, string>();
  for (const { ids, name, tokens } of fixtures) {
    for (const [what, id] of Object.entries(ids)) names.set(id, `${name}.${what}`);
    for (const [holder, { id }] of Object.entries(tokens)) names.set(id, `${name}.token.${holder}`);
  }
  return lines.map((line) => line.replace(uuid, (id) => names.get(id) ?? id));
}

async function readTables(client: Queries, lineOf: (table: string, row: Row) => string): Promise<string[]> {
  const { rows: tables } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind = 'r' and c.relname !~ $1 order by 1`,
    [others],
  );
  const lines: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query<{ row: Row }>(`select to_jsonb(t) as row from "${name}" t`);
    for (const { row } of rows) lines.push(lineOf(name, row));
  }
  return lines;
}

type Row = Record<string, unknown>;

/** New updates by their stack and their place among its new ones, and checkpoints by their update. */
async function nameUpdates(client: Queries, before: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const { rows: updates } = await client.query<{ id: string; stack: string }>(
    'select id, stack_id as stack from updates order by number',
  );
  const counts = new Map<string, number>();
  for (const { id, stack } of updates) {
    if (before.has(id)) continue;
    const count = (counts.get(stack) ?? 0) + 1;
    counts.set(stack, count);
    names.set(id, `update ${count} of ${stack}`);
  }
  const { rows: checkpoints } = await client.query<{ id: string; update: string | null; stack: string }>(
    'select id, update_id as update, stack_id as stack from checkpoints',
  );
  for (const { id, stack, update } of checkpoints)
    if (!before.has(id)) names.set(id, `checkpoint of ${update === null ? stack : (names.get(update) ?? update)}`);
  return names;
}

interface Naming {
  readonly before: ReadonlySet<string>;
  readonly names: ReadonlyMap<string, string>;
  readonly table: string;
}

function plain(row: Row, { before, names, table }: Naming): Row {
  const started = row['started_at'] ?? row['created_at'];
  const write = (value: unknown, column: string): unknown => {
    if (typeof value === 'object' && value !== null)
      return Array.isArray(value)
        ? value.map((each) => write(each, ''))
        : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, write(each, name)]));
    if (typeof value !== 'string') return value;
    if (time.test(value) && !before.has(value))
      // Durations of leases are compared in minutes.
      return table === 'updates' && /^(expires_at|must_end_at)$/.test(column) && typeof started === 'string'
        ? `${Math.round((Date.parse(value) - Date.parse(started)) / 60_000)} minutes`
        : '<time>';
    return value.replace(timeInText, '<time>').replace(uuid, (id) => names.get(id) ?? (before.has(id) ? id : '<id>'));
  };
  return Object.fromEntries(
    Object.entries(row)
      .filter(([column, value]) => !passing.has(column) && !(column === 'id' && typeof value === 'number'))
      .map(([column, value]) => [column, column === 'waited_ms' && value !== null ? '<ms>' : write(value, column)]),
  );
}
