import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { RunnerOption } from 'node-pg-migrate';
import { installationRoot } from '../config/installation.ts';

type Loader = Exclude<NonNullable<RunnerOption['migrationLoaderStrategies']>[number]['loader'], string>;

export const migrationsDir = path.join(installationRoot, 'migrations');

const withoutTransaction = /^-- Without a transaction$/m;
const nextStatement = /^-- Next statement$/m;

/**
 * Each SQL file runs in one transaction, unless it has the line `-- Without a transaction`. It then runs statement by statement, separated
 * by lines `-- Next statement`, and must tolerate being run again after a failure halfway.
 */
export const loadMigrationFiles: Loader = (files) =>
  Promise.all(
    files.map(async (file) => {
      const text = await readFile(file, 'utf8');
      const statements = withoutTransaction.test(text) ? text.split(nextStatement) : null;
      return {
        id: file,
        filePaths: [file],
        actions: {
          up: (pgm) => {
            if (statements) pgm.noTransaction();
            for (const statement of statements ?? [text]) pgm.sql(statement);
          },
          down: false as const,
        },
      };
    }),
  );
