import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { runHoldfast } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { type DiyStack, diyCheckpoint, writeDiyFolder } from '../support/diy-folder.ts';
import { importEnv } from '../support/import-run.ts';
import { PolicyCalls } from '../support/policy-packs.ts';
import { ask } from '../support/procedures.ts';
import { ok, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-import-runs-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** A folder with these stacks, an organization for them with an admin and a member, and its import. */
async function sourceOf(name: string, stacks: readonly DiyStack[]) {
  const directory = path.join(home, name);
  await writeDiyFolder(directory, stacks);
  const [admin, member] = [await app.createUser(name, 'admin'), await app.createUser(name, 'member')];
  const words = ['import', '--from', `file://${directory}`, '--organization', name];
  const answer = (procedure: string, input: object, token = admin) =>
    ask(app, token, `imports.${procedure}`, { organization: name, ...input });
  // biome-ignore lint/suspicious/noExplicitAny: the data of any procedure
  const read = async (procedure: string, input: object = {}): Promise<any> => (await answer(procedure, input)).data;
  return {
    ...{ admin, answer, directory, member, read },
    run: (...options: string[]) => runHoldfast(importEnv(app, ''), ...words, ...options),
  };
}

test('a run is shown with its source, user and counts, and each stack with what was left out and why', async () => {
  const broken = diyCheckpoint({ project: 'proj', stack: 'refused', versions: 1 }, 1) as {
    checkpoint: { latest: { resources: object[] } };
  };
  broken.checkpoint.latest.resources.reverse();
  const good = { project: 'proj', versions: 2 };
  const source = await sourceOf('shown', [
    ...['good', 'locked', 'wrong name'].map((stack) => ({ ...good, stack })),
    { ...good, stack: 'refused', newest: broken },
  ]);
  const locks = path.join(source.directory, '.pulumi/locks/organization/proj/locked');
  await mkdir(locks, { recursive: true });
  await writeFile(path.join(locks, 'x.json'), JSON.stringify({ username: 'ann', hostname: 'laptop' }));

  expect((await source.run()).code).toBe(0);
  expect(await source.read('list')).toEqual({ items: [], next: null });
  expect((await source.run('--apply')).code).toBe(1);
  const first = await source.read('list');
  expect(first).toEqual({
    items: [
      {
        ...{ id: expect.any(String), kind: 'import', sourceKind: 'folder', source: `file://${source.directory}` },
        ...{ by: expect.stringMatching(/./), startedAt: expect.any(String), endedAt: expect.any(String) },
        ...{ stacks: 2, versions: 5, previews: 0, noted: 2, quarantined: 1, verified: null },
      },
    ],
    next: null,
  });
  const { id } = first.items[0];
  const { items } = await source.read('stacks', { id });
  const came = { project: 'proj', previews: 0, secretsProvider: 'passphrase', quarantine: null, notes: [] };
  expect(items).toEqual([
    { ...came, name: 'proj/good', stack: 'good', versions: 2, isHere: true },
    {
      ...{ ...came, name: 'proj/locked', stack: 'locked', versions: 0, isHere: false },
      notes: [expect.stringContaining('it is locked by ann@laptop')],
    },
    {
      ...{ ...came, name: 'proj/refused', stack: 'refused', versions: 3, isHere: true },
      quarantine: expect.stringContaining('urn:pulumi:refused::proj'),
    },
    {
      ...{ ...came, name: 'proj/wrong name', stack: 'wrong name', versions: 0, isHere: false },
      notes: [expect.stringContaining('is not valid')],
    },
  ]);
  const pages = [await source.read('stacks', { id, limit: 3 })];
  pages.push(await source.read('stacks', { id, limit: 3, cursor: pages[0].next }));
  expect(pages.map((page) => [page.items.length, page.next === null])).toEqual([
    [3, false],
    [1, true],
  ]);

  await query(app, `update updates set message = 'another' where message = 'change 1' and stack_version = 1`);
  expect((await source.run('--verify', '--stack', 'proj/good')).code).toBe(1);
  const seen = await source.read('list');
  expect(seen.items.map(({ kind }: { kind: string }) => kind)).toEqual(['verify', 'import']);
  expect(seen.items[0]).toMatchObject({ stacks: 1, noted: 1, verified: null });
  expect(await source.read('get', { id })).toMatchObject({
    verified: { at: seen.items[0].endedAt, stacks: 1, differentStacks: 1 },
  });
  expect((await source.run('--rollback', '--apply', '--stack', 'proj/good')).code).toBe(0);
  const after = await source.read('list', { limit: 1 });
  expect(after).toMatchObject({ items: [{ kind: 'rollback', stacks: 1, versions: 2 }], next: expect.any(String) });
  expect((await source.read('list', { cursor: after.next })).items).toHaveLength(2);
  expect((await source.read('stacks', { id })).items[0]).toMatchObject({ name: 'proj/good', isHere: false });
  for (const [procedure, input] of [
    ['list', {}],
    ['get', { id }],
    ['stacks', { id }],
  ] as const)
    expect((await source.answer(procedure, input, source.member)).status).toBe(403);
});

test('an address is shown without what may be secret in it, and only to its organization', async () => {
  const [mine, other] = [await sourceOf('mine', []), await sourceOf('other', [])];
  const from = `file://${path.join(home, 'mine')}?token=hunter2`;
  await writeDiyFolder(path.join(home, 'mine'), [{ project: 'proj', stack: 'dev', versions: 1 }]);
  const run = ['import', '--from', from, '--organization', 'mine', '--apply'];
  expect((await runHoldfast(importEnv(app, ''), ...run)).code).toBe(0);
  const { items } = await mine.read('list');
  expect(items[0].source).toBe(`file://${path.join(home, 'mine')}`);
  expect(await other.read('stacks', { id: items[0].id })).toEqual({ items: [], next: null });
  expect((await other.answer('get', { id: items[0].id })).status).toBe(404);
});

test('an organization keeps its newest 200 runs', async () => {
  const { read, run } = await sourceOf('many', [{ project: 'proj', stack: 'dev', versions: 1 }]);
  await query(
    app,
    `insert into import_runs (organization_id, kind, source, run_by)
     select o.id, 'import', 'file:///old', 'old' from organizations o, generate_series(1, 220) where o.name = 'many'`,
  );
  expect((await run('--apply')).code).toBe(0);
  const kept = await query(
    app,
    `select count(*)::integer as count from import_runs where organization_id = (select id from organizations where name = 'many')`,
  );
  expect(kept).toEqual([{ count: 200 }]);
  expect((await read('list', { limit: 1 })).items[0]).toMatchObject({
    versions: 1,
    source: expect.stringMatching(/many$/),
  });
});

test('what the source lacks is in the run, so that nobody takes it for verified', async () => {
  const source = await sourceOf('gaps', [{ project: 'proj', stack: 'dev', versions: 1 }]);
  expect((await source.run('--apply')).code).toBe(0);
  const plan = path.join(home, 'gaps.json');
  expect((await source.run('--plan', plan)).code).toBe(0);
  const planned = JSON.parse(await readFile(plan, 'utf8'));
  await writeFile(plan, JSON.stringify({ ...planned, stacks: [...planned.stacks, { source: 'proj/lost' }] }));
  expect((await source.run('--verify', '--plan', plan)).code).toBe(1);
  const [verify, run] = (await source.read('list')).items;
  expect(verify).toMatchObject({ kind: 'verify', noted: 1, endedAt: expect.any(String) });
  expect(run).toMatchObject({ kind: 'import', verified: { differentStacks: 1 } });
  expect((await source.read('stacks', { id: verify.id })).items).toMatchObject([
    { name: 'proj/dev', notes: [] },
    {
      name: 'proj/lost',
      project: 'proj',
      stack: 'lost',
      notes: [expect.stringContaining('is in the plan, but not in')],
    },
  ]);
});

test('a rolled-back stack loses the grants of its creation; imported again, it is in its policy groups', async () => {
  const source = await sourceOf('again', [{ project: 'proj', stack: 'prod', versions: 1 }]);
  const at = { organization: 'again', auth: `token ${source.admin}`, path: '/api/stacks/again/proj/prod' };
  const { auth } = at;
  await ok(app.call('POST', '/api/orgs/again/teams/pulumi', { auth, body: { name: 'blue' } }));
  const body = { stackName: 'prod', teams: ['blue'] };
  await ok(app.call('POST', '/api/stacks/again/proj', { auth, body }));
  const packs = new PolicyCalls(app, at as TestStack);
  await packs.publish();
  await ok(packs.call('POST', 'policygroups', { name: 'production' }));
  await ok(packs.enable({ name: 'pack' }, 'production'));
  await ok(packs.call('PATCH', 'policygroups/production', { addStack: { name: 'prod', routingProject: 'proj' } }));
  expect((await source.run('--apply')).code).toBe(0);
  expect(await packs.required()).toHaveLength(1);

  expect((await source.run('--rollback', '--apply')).stdout).toContain('Deleted 1 stack');
  expect(await query(app, 'select 1 from grants where stack_id is not null')).toEqual([]);
  const [event] = await query(
    app,
    `select details::jsonb -> 'teams' as teams from audit_events where action = 'stack.delete' and organization = 'again'`,
  );
  expect(event).toEqual({ teams: ['blue'] });
  expect((await source.run('--apply')).code).toBe(0);
  expect(await packs.required()).toHaveLength(1);
});

test('verification and rollback take only the stacks of the plan', async () => {
  const two = ['one', 'two'].map((stack) => ({ project: 'proj', stack, versions: 1 }));
  const source = await sourceOf('waves', two);
  expect((await source.run('--apply', '--stack', 'proj/one')).code).toBe(0);
  const plan = path.join(home, 'wave1.json');
  expect((await source.run('--stack', 'proj/one', '--plan', plan)).code).toBe(0);
  const before = await readFile(plan, 'utf8');
  const verified = await source.run('--verify', '--plan', plan);
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining('Compared 1 stack and 1 version')]);
  expect((await source.run('--apply')).code).toBe(0);
  const stacksHere = async () =>
    (await query<{ name: string }>(app, 'select name from stacks where deleted_at is null order by name')).map(
      ({ name }) => name,
    );
  const all = await stacksHere();
  expect((await source.run('--rollback', '--plan', plan)).stdout).toContain(
    '1 stack with 1 imported version to delete',
  );
  expect((await source.run('--rollback', '--apply', '--plan', plan)).stdout).toContain('Deleted 1 stack');
  expect(await stacksHere()).toEqual(all.filter((name) => name !== 'one'));
  expect(await readFile(plan, 'utf8')).toBe(before);
});
