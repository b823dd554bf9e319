import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** What tells whether the rows of a table have changed, by the name of the table. */
export async function readTables(app: TestApp): Promise<ReadonlyMap<string, string>> {
  const names = await query<{ name: string }>(
    app,
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  );
  const counts = names.map(
    ({ name }) =>
      `select '${name}' as name, count(*) || ' ' || coalesce(max(xmin::text::bigint), 0) as rows from "${name}"`,
  );
  const rows = await query<{ name: string; rows: string }>(app, counts.join(' union all '));
  return new Map(rows.map((each) => [each.name, each.rows]));
}

/** Tables whose rows are others than before. */
export async function changedTables(app: TestApp, before: ReadonlyMap<string, string>): Promise<string[]> {
  const now = await readTables(app);
  return [...now]
    .flatMap(([name, rows]) => (rows === before.get(name) ? [] : [name.replace(/_\d{4}_\d\d$/, '')]))
    .sort();
}
