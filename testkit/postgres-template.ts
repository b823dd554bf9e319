import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleDir, listSources, root } from './bundles/bundle-dir.ts';
import { preparePostgres } from './cluster-postgres.ts';
import { ClusterProcess } from './cluster-process.ts';
import { findFixedPorts } from './fixed-ports.ts';
import { holdfastProgram } from './holdfast-program.ts';

const run = promisify(execFile);

/**
 * An initialized cluster with all migrations, for a server that has not started yet. It is created once for each set of migrations, and
 * copied in a tenth of that time. Copies are the same installation: tests that compare databases must not use it.
 */
export async function copyPreparedPostgres(dataDir: string): Promise<void> {
  const template = await preparedPostgres();
  // Keeps the owner, because Postgres does not run as root.
  await run('cp', ['-a', join(template, 'postgres'), join(dataDir, 'postgres')]);
}

async function preparedPostgres(): Promise<string> {
  const folder = join(root, 'migrations');
  const names = (await readdir(folder)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name))));
  const recipes = ['cluster-postgres.ts', 'postgres-template.ts'].map((name) => join(import.meta.dirname, name));
  const migrator = await listSources(join(root, 'src/shared/platform/db'));
  const code = await Promise.all([...recipes, ...migrator].map((file) => readFile(file)));
  return bundleDir('postgres', [...names, ...texts, ...code], createPostgres);
}

async function createPostgres(home: string): Promise<void> {
  const [port] = (await findFixedPorts(1)) as [number];
  const spec = await preparePostgres(home, port);
  const postgres = new ClusterProcess(spec, () => {});
  try {
    await postgres.start();
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, HOLDFAST_DATABASE_URL: spec.url };
    await run(process.execPath, [holdfastProgram, 'migrate'], { env });
  } catch (error) {
    await postgres.stop();
    throw error;
  }
  // Copies of a killed cluster would need recovery at each start.
  if (!(await postgres.stop())) throw new Error('the Postgres for end-to-end tests did not stop');
}
