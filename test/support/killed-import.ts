import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from '@jest/globals';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

/** How many versions imports have brought into an organization. */
export async function importedVersions(app: TestApp, organization: string): Promise<number> {
  const rows = await query<{ count: number }>(
    app,
    `select count(*)::integer as count from imported_versions i join updates u on u.id = i.update_id join stacks s on s.id = u.stack_id
     join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id and o.name = $1`,
    [organization],
  );
  return rows[0]?.count ?? 0;
}

/**
 * Starts an import into the organization once per number, and kills it when at least so many versions are imported. Returns how many it
 * has killed.
 */
export async function killImports(
  app: TestApp,
  organization: string,
  run: { readonly words: readonly string[]; readonly env: NodeJS.ProcessEnv },
  numbers: readonly number[],
): Promise<number> {
  let kills = 0;
  for (const atLeast of numbers) {
    const child = spawn(process.execPath, [holdfastProgram, ...run.words], { env: run.env, stdio: 'ignore' });
    const ended = once(child, 'exit');
    const isReached = async () => child.exitCode !== null || (await importedVersions(app, organization)) >= atLeast;
    await until(isReached, `${atLeast} versions are imported`);
    if (child.kill('SIGKILL')) kills++;
    await ended;
  }
  expect(kills).toBeGreaterThan(0);
  return kills;
}
