import { query } from './database.ts';
import { createStack, deployment, ok, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';

export interface FilledStack extends TestStack {
  readonly stackId: string;
}

export interface Fill {
  /** Ended updates on top of two imports. */
  readonly updates: number;
  /** The number of each. */
  readonly events: number;
  readonly entries: number;
}

/** A stack with history: two imports made through the API, the rest by SQL. */
export async function createFilledStack(app: TestApp, fill: Fill): Promise<FilledStack> {
  const stack = await createStack(app);
  for (let round = 1; round <= 2; round++)
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(round) }));
  await ok(app.call('POST', `${stack.path}/encrypt`, { auth: stack.auth, body: { plaintext: 'QQ==' } }));
  const { id: stackId } = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json;
  // Each with its own checkpoint, based on the previous one.
  for (let version = 3; version < 3 + fill.updates; version++) {
    await query(
      app,
      `with made as (
         insert into updates (stack_id, kind, exclusive, status, stack_version, expires_at, base_checkpoint_id, ended_at)
         select $1, 'update', true, 'succeeded', $2, now(), checkpoint_id, now() from stacks where id = $1 returning id
       ), state as (
         insert into checkpoints (stack_id, update_id, sha256, size_bytes, stored_bytes, codec, resource_count, inline_bytes)
         select $1, id, '', 0, 0, 'zstd', 1, '' from made returning id
       ), head as (update stacks set checkpoint_id = state.id, stack_version = $2 from state where stacks.id = $1),
       events as (insert into engine_events (update_id, sequence, event) select made.id, i, '{"sequence":' || i || '}' from made, generate_series(1, $3::integer) i),
       journal as (insert into journals (update_id, stack_id, entry_count, compacted_entries, compaction_error)
         select id, $1, $4::integer, $4::integer, 'cannot be replayed' from made)
       insert into journal_entries select made.id, i, '{}' from made, generate_series(1, $4::integer) i`,
      [stackId, version, fill.events, fill.entries],
    );
    await query(
      app,
      `update updates u set checkpoint_id = s.checkpoint_id from stacks s where s.id = $1 and u.stack_id = $1 and u.stack_version = $2`,
      [stackId, version],
    );
  }
  return { ...stack, stackId };
}

export const deleteStack = (app: TestApp, stack: TestStack) =>
  app.call('DELETE', `${stack.path}?force=true`, { auth: stack.auth });

const ownedTables = [
  ...['updates', 'journals', 'checkpoints', 'former_stack_names', 'encryption_keys'],
  'webhook_deliveries',
];
const historyTables = ['engine_events', 'event_segments', 'journal_entries', 'journal_snapshots'];

/** Row counts of the tables, for a database with one stack. */
export async function countRows(app: TestApp): Promise<Record<string, number>> {
  const counts = [...ownedTables, ...historyTables, 'stacks'].map(
    (table) => `(select count(*)::integer from ${table}) as ${table}`,
  );
  const [row] = await query<Record<string, number>>(app, `select ${counts.join(', ')}`);
  return row ?? {};
}

export const noRows = Object.fromEntries([...ownedTables, ...historyTables, 'stacks'].map((table) => [table, 0]));

interface StatementCount {
  readonly table: string;
  readonly transaction: string;
  readonly rows: number;
  /** By a foreign key rather than by one of our statements. */
  readonly cascaded: boolean;
}

/** Records each statement from now on that deletes or updates rows, including those of foreign keys. */
export async function countStatements(app: TestApp): Promise<{
  readonly deletions: () => Promise<StatementCount[]>;
  readonly changes: () => Promise<StatementCount[]>;
}> {
  await query(app, 'create table counted (place text, op text, transaction text, rows integer, depth integer)');
  await query(
    app,
    `create function count_rows() returns trigger language plpgsql as $$ begin
       insert into counted select tg_table_name, tg_op, pg_current_xact_id()::text, count(*), pg_trigger_depth() from gone;
       return null;
     end $$`,
  );
  for (const table of [...ownedTables, ...historyTables, 'stacks'])
    for (const op of ['delete', 'update'])
      await query(
        app,
        `create trigger count_${op} after ${op} on ${table} referencing old table as gone
         for each statement execute function count_rows()`,
      );
  const read = (op: string) => () =>
    query<StatementCount & Record<string, unknown>>(
      app,
      `select place as table, transaction, rows, depth > 1 as cascaded from counted where op = $1 and rows > 0`,
      [op],
    );
  return { deletions: read('DELETE'), changes: read('UPDATE') };
}
