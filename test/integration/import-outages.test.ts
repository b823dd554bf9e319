import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { FolderSource } from '../../src/cli/moving/folder-source.ts';
import { planStack } from '../../src/cli/moving/import-plan.ts';
import type { SourceStack } from '../../src/cli/moving/moving-source.ts';
import { verifyStack } from '../../src/cli/moving/verify-import.ts';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { FileFolder } from '../../src/shared/platform/blobs/file-folder.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { runHoldfast } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { writeDiyFolder } from '../support/diy-folder.ts';
import { importEnv } from '../support/import-run.ts';
import { testApp } from '../support/test-app.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-import-outages-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const lost = 'The database is not available at the moment';

/** A folder with three stacks, an organization for them, and its commands. */
async function sourceOf(name: string) {
  const directory = path.join(home, name);
  await writeDiyFolder(
    directory,
    ['one', 'three', 'two'].map((stack) => ({ project: 'proj', stack, tags: {}, versions: 2 })),
  );
  await app.createUser(name, 'admin');
  const from = ['--from', `file://${directory}`, '--organization', name];
  return {
    directory,
    run: (...options: string[]) => runHoldfast(importEnv(app, ''), 'import', ...from, ...options),
  };
}

/** As when Postgres shuts down in the middle of a statement. */
async function withOutage(table: string, condition: string, work: () => Promise<void>): Promise<void> {
  await query(
    app,
    `create function cut() returns trigger language plpgsql as $$ begin
       raise exception 'terminating connection due to administrator command' using errcode = 'admin_shutdown';
     end $$`,
  );
  try {
    await query(
      app,
      `create trigger cut before insert or update on ${table} for each row when (${condition}) execute function cut()`,
    );
    await work();
  } finally {
    await query(app, 'drop function cut cascade');
  }
}

test('an outage while a stack is committed leaves only this stack behind, and the run ends', async () => {
  const source = await sourceOf('import');
  await withOutage('stacks', `new.name = 'two'`, async () => {
    const { code, stderr, stdout } = await source.run('--apply', '--parallel', '1');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.not.stringMatching(/^ {4}at /m) });
    expect(stdout).toContain(`proj/two: interrupted: ${lost}`);
    expect(stdout).toContain('Imported 4 versions of 2 stacks into import.');
  });
  expect(await query(app, 'select 1 from import_runs where ended_at is null')).toEqual([]);
  expect((await source.run('--apply')).stdout).toContain('Imported 2 versions of 1 stack into import.');
});

test('an outage while a stack is noted changes no result, and the run ends', async () => {
  const source = await sourceOf('noted');
  await withOutage('import_run_stacks', `new.stack = 'one'`, async () => {
    const { code, stdout } = await source.run('--apply', '--parallel', '1');
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('Imported 6 versions of 3 stacks') });
  });
  expect(await query(app, 'select 1 from import_runs where ended_at is null')).toEqual([]);
});

test('a file of tags that has none is a reason of its stack', async () => {
  const source = await sourceOf('tags');
  const tags = path.join(source.directory, '.pulumi/stacks/proj/three.pulumi-tags');
  await writeFile(tags, 'null');
  const { code, stdout } = await source.run();
  expect([code, stdout]).toEqual([0, expect.stringContaining('3 to create')]);
  expect(stdout).toContain('without its tags: .pulumi/stacks/proj/three.pulumi-tags is not a file of tags');
});

test('an outage while a stack is planned or compared is a reason of this stack', async () => {
  const source = await sourceOf('compared');
  const { stacks } = await new FolderSource(
    await openFolder(`file://${source.directory}`, {} as never),
    'there',
  ).list();
  const stack = stacks[0] as SourceStack;
  const cut = Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' });
  const context = { ...app.context, stacks: { ...app.context.stacks, find: () => Promise.reject(cut) } };
  const parts = { context, organization: 'compared' };
  expect((await planStack(parts, stack)).planned).toMatchObject({
    ...{ source: stack.name, action: 'leave out', notes: [expect.stringContaining(lost)] },
  });
  expect((await verifyStack(parts, stack)).problems).toEqual([expect.stringContaining(lost)]);
  const fault = new TypeError('a bug');
  const faulty = { ...context, stacks: { ...app.context.stacks, find: () => Promise.reject(fault) } };
  await expect(verifyStack({ ...parts, context: faulty }, stack)).rejects.toBe(fault);
});

const idOf = (organization: string): string => `select id from organizations where name = '${organization}'`;

/** A folder as a bucket that fails to open some of its files. */
class FailingFolder extends FileFolder {
  fails: (name: string) => boolean = () => false;

  override async open(name: string): Promise<AsyncIterable<Buffer> | null> {
    if (this.fails(name)) throw new BlobStoreUnavailableError('throttled', 'blob store asks to slow down');
    return super.open(name);
  }
}

/** A stack of a folder that may fail, and what an import finds of it. */
async function failingSource(name: string) {
  const { directory, run } = await sourceOf(name);
  const folder = new FailingFolder(directory);
  const { stacks } = await new FolderSource(folder, 'there').list();
  const stack = stacks.find((each) => each.name === 'proj/one') as SourceStack;
  const parts = { context: app.context, organization: name };
  return { folder, run, plan: () => planStack(parts, stack), verify: () => verifyStack(parts, stack) };
}

test.each([
  ['the newest state', /stacks\/proj\/one\.json$/],
  ['a state of the history', /one-\d+\.checkpoint\.json$/],
  ['an update of the history', /one-\d+\.history\.json$/],
  ['the tags', /pulumi-tags$/],
])('what a bucket does not give of %s at the moment is no difference that is left out', async (what, pattern) => {
  const name = `bucket-${what.replaceAll(' ', '-')}`;
  const { folder, verify, run } = await failingSource(name);
  folder.fails = (file) => pattern.test(file);
  // Before its import, after it, and after the import of a part.
  for (const prepare of [
    async () => undefined,
    () => run('--apply'),
    () => query(app, `delete from updates where message = 'change 2' and organization_id = (${idOf(name)})`),
  ]) {
    await prepare();
    const { leftOut, problems } = await verify();
    const others = problems.filter((problem) => !/asks to slow down$|is not here$|newest states differ$/.test(problem));
    expect({ leftOut, others, hasProblems: problems.length > 0 }).toEqual({
      leftOut: [],
      others: [],
      hasProblems: true,
    });
  }
});

test('a stack that is not here is named, although its newest state is damaged', async () => {
  const { run, verify } = await failingSource('damaged');
  await writeFile(path.join(home, 'damaged/.pulumi/stacks/proj/one.json'), '{"version":3,');
  expect((await run('--apply')).code).toBe(1);
  const { leftOut, problems } = await verify();
  expect(problems).toContain('it is not here');
  expect(leftOut).toEqual([expect.stringContaining('the newest state: ')]);
});

test.each([
  ['the last state of the history', /one-1700007200000000000\.checkpoint\.json$/],
  ['the mark of the newest state', /stacks\/proj\/one\.json$/],
])('a bucket that fails once to give %s gets no version that the source lacks', async (what, pattern) => {
  const { folder, plan } = await failingSource(`once-${what.replaceAll(' ', '-')}`);
  let failed = 0;
  folder.fails = (file) => pattern.test(file) && failed++ === 0;
  const { planned, unrecordedState } = await plan();
  expect(failed).toBeGreaterThan(0);
  expect({ action: planned.action, notes: planned.notes, unrecordedState }).toEqual({
    ...{ action: 'leave out', unrecordedState: null },
    notes: [expect.stringContaining('asks to slow down')],
  });
});

test.each([
  ['that cannot be written', '/missing/plan.json', [], /^holdfast: ENOENT: .*'\/missing\/plan.json'\n$/],
  ['that is missing', '/missing/plan.json', ['--apply'], /^holdfast: ENOENT: .*'\/missing\/plan.json'\n$/],
  ['that is no JSON', path.join(home, 'broken.json'), ['--apply'], /^holdfast: .*broken.json is not a plan\n$/],
])('a plan %s is named in one line', async (_, file, options, message) => {
  const name = `plan${options.length}-${path.basename(file, '.json')}`;
  const source = await sourceOf(name);
  await writeFile(path.join(home, 'broken.json'), '{');
  const { code, stderr, stdout } = await source.run('--plan', file, ...options);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(message) });
  // Before the plan is made, which may take an hour.
  expect(stdout).toBe('');
});

test('a missing file of identities is named in one line', async () => {
  const options = ['--from', 'archive', home, '--organization', 'import', '--identity', '/missing/identity'];
  const { code, stderr } = await runHoldfast(importEnv(app, ''), 'import', ...options);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^holdfast: ENOENT: .*identity'\n$/) });
});
