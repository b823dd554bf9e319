import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** Columns that say when a row was written last. */
const passing = ['updated_at', 'checked_at', 'changed_at'];

/** Tables that keep what happened, whatever becomes of the stack, or what is still to be done. */
const others = '^(audit_|webhook_events|state_index_due|stack_days|refused_runs)';

/** Every row that belongs to a stack, by its table: of all tables that name stacks, updates or checkpoints. */
export async function rowsOf(app: TestApp, stackId: string): Promise<Record<string, string[]>> {
  const columns = await query<{ table: string; names: string[] }>(
    app,
    `select c.table_name as table, array_agg(c.column_name::text) as names
     from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
     where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.table_name !~ $1 group by 1`,
    [others],
  );
  const parts = columns.flatMap(({ names, table }) => {
    const where =
      table === 'stacks'
        ? 't.id = $1'
        : names.includes('stack_id')
          ? 't.stack_id = $1'
          : names.includes('update_id')
            ? 't.update_id in (select id from updates where stack_id = $1)'
            : names.includes('checkpoint_id')
              ? 't.checkpoint_id in (select id from checkpoints where stack_id = $1)'
              : null;
    return where === null ? [] : [`select '${table}' as table, to_jsonb(t) as row from "${table}" t where ${where}`];
  });
  const found = await query<{ table: string; row: Record<string, unknown> }>(app, parts.join(' union all '), [stackId]);
  const rows: Record<string, string[]> = {};
  for (const { row, table } of found) {
    for (const name of passing) delete row[name];
    rows[table] = [...(rows[table] ?? []), JSON.stringify(row)].sort();
  }
  // A measurement, which comes and goes with the stack.
  if (rows['stacks']) delete rows['stack_storage'];
  return rows;
}
