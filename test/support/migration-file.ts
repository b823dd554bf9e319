import { loadMigrationFiles } from '../../src/shared/platform/db/migration-files.ts';

interface Loaded {
  readonly statements: readonly string[];
  readonly hasTransaction: boolean;
}

/** What the runner would send to Postgres for the migration in this file. */
export async function readMigration(file: string): Promise<Loaded> {
  const statements: string[] = [];
  let hasTransaction = true;
  const builder = {
    sql: (text: string) => void statements.push(text),
    noTransaction: () => {
      hasTransaction = false;
    },
  };
  for (const { actions } of await loadMigrationFiles([file]))
    await (actions.up as unknown as (pgm: typeof builder) => unknown)(builder);
  return { statements, hasTransaction };
}
