import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { runHoldfast } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { type DiyStack, diyCheckpoint, writeDiyFolder } from '../support/diy-folder.ts';
import { killAtTenPoints } from '../support/killed-import.ts';
import { ok } from '../support/state.ts';
import { masterKeys, testApp } from '../support/test-app.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-import-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const env = () => ({
  ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
  HOLDFAST_MASTER_KEYS: masterKeys,
});

/** A folder with these stacks, an organization for them, and its import. */
async function sourceOf(name: string, stacks: readonly DiyStack[]) {
  const directory = path.join(home, name);
  await writeDiyFolder(directory, stacks);
  const auth = `token ${await app.createUser(name, 'admin')}`;
  const words = ['import', '--from', `file://${directory}`, '--organization', name];
  return {
    ...{ auth, directory },
    run: async (...options: string[]) => {
      const { code, stderr, stdout } = await runHoldfast(env(), ...words, ...options);
      return { code, stderr, stdout, text: stdout + stderr };
    },
    get: async (call: string) => (await ok(app.call('GET', `/api/stacks/${name}/${call}`, { auth }))).json,
  };
}

interface Planned {
  readonly action: string;
  readonly notes: readonly string[];
}

test('a plan changes nothing, and says what is left out and why', async () => {
  const broken = diyCheckpoint({ project: 'proj', stack: 'refused', versions: 1 }, 1) as {
    checkpoint: { latest: { resources: object[] } };
  };
  broken.checkpoint.latest.resources.reverse();
  const good = { project: 'proj', versions: 2 };
  const source = await sourceOf('planned', [
    ...[
      { ...good, stack: 'good' },
      { ...good, stack: 'locked' },
      { ...good, stack: 'damaged' },
    ],
    ...[
      { ...good, stack: 'wrong name' },
      { ...good, stack: 'refused', newest: broken },
    ],
  ]);
  const root = path.join(source.directory, '.pulumi');
  await mkdir(path.join(root, 'locks/organization/proj/locked'), { recursive: true });
  const lock = { pid: 1, username: 'ann', hostname: 'laptop', timestamp: '2026-01-02T03:04:05Z' };
  await writeFile(path.join(root, 'locks/organization/proj/locked/x.json'), JSON.stringify(lock));
  await writeFile(path.join(root, 'stacks/proj/damaged.json'), '{"version":3,"checkpoint":{"latest":{"resources":[');
  await writeFile(path.join(root, 'stacks/old.json'), '{}');
  const file = path.join(home, 'plan.json');
  const { code, stdout } = await source.run('--plan', file);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/2 to create, 0 to continue, 0 complete, 3 left out/)]);
  expect(stdout).toMatch(/passphrase \(2 stacks\)/);
  expect(stdout).toContain('.pulumi/stacks/old.json is left out');
  const plan = JSON.parse(await readFile(file, 'utf8')) as { stacks: (Planned & { source: string })[] };
  expect(
    Object.fromEntries(plan.stacks.map(({ action, notes, source: name }) => [name, [action, notes.join()]])),
  ).toEqual({
    'proj/good': ['create', ''],
    'proj/damaged': ['leave out', expect.stringContaining('Unexpected end of JSON')],
    'proj/locked': ['leave out', expect.stringContaining('locked by ann@laptop since 2026-01-02T03:04:05Z')],
    'proj/refused': ['create', ''],
    'proj/wrong name': ['leave out', expect.stringContaining('name "wrong name" is not valid')],
  });
  expect(stdout).toMatch(/in quarantine, because the CLI refuses its newest state: .* which is not before it/);
  expect(await query(app, 'select 1 from imported_versions')).toEqual([]);

  // A plan without some of its stacks imports the others.
  await writeFile(file, JSON.stringify({ ...plan, stacks: plan.stacks.filter((each) => each.source === 'proj/good') }));
  const applied = await source.run('--plan', file, '--apply');
  expect([applied.code, applied.text]).toEqual([0, 'Imported 2 versions of 1 stack into planned.\n']);

  // A stack of the plan that is gone, and one in another layout, are named.
  await writeFile(file, JSON.stringify({ ...plan, stacks: [...plan.stacks, { source: 'proj/gone' }] }));
  const incomplete = await source.run('--plan', file, '--apply');
  expect([incomplete.code, incomplete.text]).toEqual([
    1,
    expect.stringContaining('proj/gone is in the plan, but not in file://'),
  ]);
  for (const [code, ...words] of [
    [1, '--verify'],
    [0, '--verify', '--stack', 'proj/good'],
  ] as const) {
    const verified = await source.run(...words);
    expect([verified.code, verified.text.includes('.pulumi/stacks/old.json is left out')]).toEqual([code, code === 1]);
  }
});

test.each([
  { words: ['--stack', 'proj/typo'], unknown: 'proj/typo' },
  { words: ['--verify', '--stack', 'proj/dev', '--stack', 'typo/*'], unknown: 'typo/*' },
  { words: ['--apply', '--map', 'proj/typo=proj/new'], unknown: 'proj/typo' },
])('$words fails, because no stack has that name', async ({ unknown, words }) => {
  const source = await sourceOf('typo', [{ project: 'proj', stack: 'dev', versions: 1 }]);
  const { code, text } = await source.run(...words);
  expect([code, text]).toEqual([1, expect.stringContaining(`there is no stack "${unknown}" in file://`)]);
  expect(
    await query(app, "select 1 from stacks s join projects p on p.id = s.project_id where p.name = 'typo'"),
  ).toEqual([]);
});

test('versions come with states, times, messages, results, environment, configuration and tags', async () => {
  const stack = { project: 'proj', stack: 'dev', versions: 8, tags: { team: 'core' }, gzip: true };
  const source = await sourceOf('whole', [stack]);
  expect((await source.run('--apply')).text).toBe('Imported 8 versions of 1 stack into whole.\n');
  expect((await source.get('proj/dev')).tags).toEqual({ team: 'core', 'pulumi:project': 'proj' });
  const { updates } = await source.get('proj/dev/updates');
  expect(updates).toHaveLength(8);
  expect(updates[1]).toMatchObject({
    ...{ version: 7, kind: 'update', result: 'failed', message: 'change 7' },
    ...{ startTime: 1_700_000_000 + 7 * 3600, endTime: 1_700_000_030 + 7 * 3600 },
    environment: { 'git.head': 'commit-7' },
    config: {
      'proj:a': { string: 'plain', secret: false, object: false },
      'proj:b': { string: 'v1:AAAA:BBBB', secret: true, object: false },
      'proj:c': { string: '{"list":[1.5,{"secure":"v1:C:D"}]}', secret: true, object: true },
    },
    resourceChanges: { update: 1, same: 2 },
  });
  const { version, checkpoint } = diyCheckpoint(stack, 3) as { version: number; checkpoint: { latest: object } };
  expect(await source.get('proj/dev/export/3')).toEqual({ version, deployment: checkpoint.latest });
  expect((await source.run('--verify')).text).toMatch(/^Compared 1 stack and 8 versions, .* no differences\.\n$/);

  await query(app, `update updates set message = 'another' where message = 'change 3'`);
  await query(app, `delete from updates where message = 'change 2'`);
  const { code, stdout } = await source.run('--verify');
  expect([code, stdout]).toEqual([1, expect.stringContaining('version 3 has another message')]);
  expect(stdout).toMatch(/entry \d+ is not here/);
});

test('damaged states of the history are left out, and named each time', async () => {
  const source = await sourceOf('damage', [{ project: 'proj', stack: 'dev', versions: 4, gzip: true }]);
  for (const version of [2, 4]) {
    const name = `dev-${1_700_000_000 + version * 3600}000000000.checkpoint.json.gz`;
    const file = path.join(source.directory, '.pulumi/history/proj/dev', name);
    await writeFile(file, (await readFile(file)).subarray(0, 100));
  }
  const first = await source.run('--apply');
  expect([first.code, first.stdout]).toEqual([1, expect.stringContaining('Imported 3 versions of 1 stack')]);
  expect(first.stdout.match(/checkpoint\.json\.gz: /g)).toHaveLength(2);
  // The newest state is whole in its own file, and is imported once.
  const again = await source.run('--apply');
  expect([again.code, again.stdout]).toEqual([1, expect.stringContaining('Imported 0 versions of 0 stacks')]);
  const { updates } = await source.get('proj/dev/updates');
  expect(updates.map(({ kind }: { kind: string }) => kind)).toEqual(['import', 'update', 'update']);
  const verified = await source.run('--verify');
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/left out: entry \d+/)]);
});

test('an import that is killed at ten points goes on, and nothing is there twice', async () => {
  const stacks = Array.from({ length: 40 }, (_, at) => ({ project: `p${at % 3}`, stack: `s${at}`, versions: 3 }));
  const source = await sourceOf('killed', stacks);
  const words = ['--from', `file://${source.directory}`];
  await killAtTenPoints({
    app,
    organization: 'killed',
    words,
    env: env(),
    parallel: '1',
    leastKills: 8,
    stacks: 40,
    versions: 120,
  });
});

test('a second pass imports what is new, and no stack that was updated here', async () => {
  const dev = { project: 'proj', stack: 'dev', versions: 2 };
  const prod = { project: 'proj', stack: 'prod', versions: 2 };
  const source = await sourceOf('second', [dev, prod]);
  await source.run('--apply');
  const path_ = '/api/stacks/second/proj/prod';
  const body = await source.get('proj/prod/export');
  await ok(app.call('POST', `${path_}/import`, { auth: source.auth, body }));
  const edited = { ...dev, resources: 5 };
  await writeDiyFolder(source.directory, [{ ...dev, versions: 4, newest: diyCheckpoint(edited, 4) }], 3);
  await writeDiyFolder(source.directory, [{ ...prod, versions: 3 }], 3);
  const { code, stdout } = await source.run('--apply');
  expect([code, stdout]).toEqual([
    1,
    'proj/prod: it was updated here since its import\nImported 3 versions of 1 stack into second.\n1 stack not imported completely: see above.\n',
  ]);
  const { updates } = await source.get('proj/dev/updates');
  expect(updates.map(({ kind, message }: { kind: string; message: string }) => [kind, message])).toEqual([
    ['import', 'State that the history of the source does not have'],
    ...[4, 3, 2, 1].map((version) => ['update', `change ${version}`]),
  ]);
  expect((await source.get('proj/dev/export')).deployment.resources).toHaveLength(6);
  expect((await source.run('--verify', '--stack', 'proj/dev')).code).toBe(0);

  // A source without the history of these versions is another one.
  await rm(path.join(source.directory, '.pulumi/history'), { recursive: true });
  expect((await source.run('--stack', '*/dev')).stdout).toContain('its versions here come from another source');
});

test('nothing is imported into a read-only installation', async () => {
  const source = await sourceOf('closed', [{ project: 'proj', stack: 'dev', versions: 1 }]);
  const readOnly = (...words: string[]) => runHoldfast(env(), 'admin', 'read-only', ...words);
  await readOnly('on', '--reason', 'Postgres moves');
  try {
    expect((await source.run()).code).toBe(0);
    const { code, stderr } = await source.run('--apply');
    expect([code, stderr]).toEqual([1, expect.stringContaining('read-only for now: Postgres moves')]);
    expect(await app.context.stacks.find({ organization: 'closed', project: 'proj', stack: 'dev' })).toBeNull();
  } finally {
    await readOnly('off');
  }
  expect((await source.run('--apply')).code).toBe(0);
});

test('stacks of the layout without projects get the project of their resources', async () => {
  const source = await sourceOf('legacy', [{ stack: 'dev', versions: 2 }]);
  expect((await source.run('--apply')).text).toBe('Imported 2 versions of 1 stack into legacy.\n');
  expect((await source.get('proj/dev/export')).deployment.resources).toHaveLength(4);
  expect((await source.run('--verify')).code).toBe(0);
});

test('a rollback keeps a stack without a history whose state came from another source', async () => {
  const source = await sourceOf('foreign', [{ project: 'proj', stack: 'dev', versions: 0 }]);
  await source.run('--apply');
  const other = path.join(home, 'elsewhere');
  await writeDiyFolder(other, [{ project: 'proj', stack: 'dev', versions: 0, resources: 5 }]);
  const words = ['import', '--from', `file://${other}`, '--organization', 'foreign', '--rollback', '--apply'];
  const { code, stdout } = await runHoldfast(env(), ...words);
  expect([code, stdout]).toEqual([
    1,
    expect.stringContaining('proj/dev: kept: its state is not the one of the source'),
  ]);
  expect((await source.run('--rollback', '--apply')).text).toContain('Deleted 1 stack with 1 imported version');
});

test('a rollback of a stack without a history whose source was updated since says what helps', async () => {
  const stack = { project: 'proj', stack: 'dev' };
  const source = await sourceOf('updated', [{ ...stack, versions: 0 }]);
  await source.run('--apply');
  await writeDiyFolder(source.directory, [{ ...stack, versions: 1 }]);
  const kept = await source.run('--rollback', '--apply');
  expect([kept.code, kept.text]).toEqual([1, expect.stringMatching(/was updated there since, import it again first/)]);
  expect((await source.run('--apply')).code).toBe(0);
  expect((await source.run('--rollback', '--apply')).text).toContain('Deleted 1 stack with 2 imported versions');
});
