import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { holdfastProgram } from '../testkit/holdfast-program.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { loadAverage, printTable } from './support/measures.ts';

/**
 * How long `holdfast apply` takes for an organization with many teams and grants, and how long when nothing changed.
 * Usage: npm run bench apply -- [--teams 500] [--grants 5000]
 */
const { values } = parseArgs({
  options: { teams: { type: 'string', default: '500' }, grants: { type: 'string', default: '5000' } },
});
const teams = Number(values.teams);
const grants = Number(values.grants);

await using server = await startOwnHoldfast({ HOLDFAST_LOG_LEVEL: 'warn' });
const { organization } = server;
const folder = await mkdtemp(path.join(tmpdir(), 'bench-apply-'));

const document = (kind: string, name: string, spec: object): string =>
  `apiVersion: holdfast/v1\nkind: ${kind}\nmetadata: { name: ${name}, organization: ${organization}, labels: { from: git } }\nspec: ${JSON.stringify(spec)}\n`;
const documents = [
  ...Array.from({ length: teams }, (_, at) => document('Team', `team-${at}`, { description: `Team ${at}` })),
  ...Array.from({ length: grants }, (_, at) =>
    document('Grant', `grant-${at}`, { team: `team-${at % teams}`, permissions: ['write'], stacks: `p${at}/*` }),
  ),
];

async function run(...words: string[]): Promise<{ seconds: number; last: string }> {
  const begin = performance.now();
  const args = [holdfastProgram, ...words, '-f', folder, '--url', server.url, '--token', server.token];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`holdfast ${words[0]} ended with ${code}`);
  return { seconds: (performance.now() - begin) / 1000, last: printed.trimEnd().split('\n').at(-1) ?? '' };
}

try {
  await writeFile(path.join(folder, 'all.yaml'), documents.join('---\n'));
  const runs = [
    ['plan of all', await run('plan')],
    ['apply of all', await run('apply', '--yes')],
    ['apply again', await run('apply', '--yes')],
  ] as const;
  console.log(`${teams} teams, ${grants} grants; load ${await loadAverage()}`);
  printTable(
    ['run', 's', 'says'],
    runs.map(([name, { last, seconds }]) => [name, seconds.toFixed(1), last]),
  );
} finally {
  await rm(folder, { recursive: true, force: true });
}
