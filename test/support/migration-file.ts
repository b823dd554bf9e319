import path from 'node:path';
import { loadMigrationFiles } from '../../src/shared/platform/db/migration-files.ts';

const directory = path.join(import.meta.dirname, '../../migrations');

interface Loaded {
  readonly statements: readonly string[];
  readonly hasTransaction: boolean;
}

/** What the runner would send to Postgres for a migration. */
export async function readMigration(name: string): Promise<Loaded> {
  const statements: string[] = [];
  let hasTransaction = true;
  const builder = {
    sql: (text: string) => void statements.push(text),
    noTransaction: () => {
      hasTransaction = false;
    },
  };
  for (const { actions } of await loadMigrationFiles([path.join(directory, `${name}.sql`)]))
    await (actions.up as unknown as (pgm: typeof builder) => unknown)(builder);
  return { statements, hasTransaction };
}
