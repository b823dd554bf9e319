import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect } from '@jest/globals';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { runHoldfast } from './admin.ts';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';
import { until } from './until.ts';

const points = 10;
/** The last kill is at this share of the versions. */
const killedShare = 0.6;

/** How many versions imports have brought into an organization. */
async function importedVersions(app: TestApp, organization: string): Promise<number> {
  const rows = await query<{ count: number }>(
    app,
    `select count(*)::integer as count from imported_versions i join updates u on u.id = i.update_id join stacks s on s.id = u.stack_id
     join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id and o.name = $1`,
    [organization],
  );
  return rows[0]?.count ?? 0;
}

interface KilledImport {
  readonly app: TestApp;
  readonly organization: string;
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** How many stacks are imported at once. */
  readonly parallel: string;
  /** An import that is not seen in time ends by itself, and the later ones find nothing to do: how many must be killed. */
  readonly leastKills: number;
  /** What there is to import. */
  readonly stacks: number;
  readonly versions: number;
}

/** Each time after the import has brought a version, and then runs it to its end. Everything is there once. */
export async function killAtTenPoints(killed: KilledImport): Promise<void> {
  const { app, env, leastKills, organization, parallel, stacks, versions } = killed;
  const words = ['import', ...killed.words, '--organization', organization];
  expect(await killImports({ ...killed, words: [...words, '--apply', '--parallel', parallel] })).toBeGreaterThanOrEqual(
    leastKills,
  );
  const run = async (option: string) => {
    const { code, stderr, stdout } = await runHoldfast(env, ...words, option);
    return { code, text: stdout + stderr };
  };
  expect(await run('--apply')).toMatchObject({ code: 0 });
  expect(await importedVersions(app, organization)).toBe(versions);
  expect((await run('--apply')).text).toBe(`Imported 0 versions of 0 stacks into ${organization}.\n`);
  const compared = `Compared ${stacks} stacks and ${versions} versions, `;
  expect((await run('--verify')).text).toMatch(new RegExp(`^${compared}.* no differences\\.\n$`));
}

/** Returns how many it has killed. */
async function killImports({ app, env, organization, versions, words }: KilledImport): Promise<number> {
  let kills = 0;
  for (let point = 0; point < points; point++) {
    const before = await importedVersions(app, organization);
    const atLeast = Math.max(before + 1, Math.floor((point * versions * killedShare) / points));
    const child = spawn(process.execPath, [holdfastProgram, ...words], { env, stdio: 'ignore' });
    const ended = once(child, 'exit');
    const isReached = async () => child.exitCode !== null || (await importedVersions(app, organization)) >= atLeast;
    await until(isReached, `${atLeast} versions are imported`);
    if (child.kill('SIGKILL')) kills++;
    await ended;
  }
  return kills;
}
