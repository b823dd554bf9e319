import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runHoldfast } from '../support/admin.ts';
import { archiveEnds } from '../support/archive-ends.ts';
import { query } from '../support/database.ts';
import { type DiyStack, diyCheckpoint, writeDiyFolder } from '../support/diy-folder.ts';
import { encrypt, runUpdate, stateWith } from '../support/import-ends.ts';
import { importEnv, runImport } from '../support/import-run.ts';
import { listenBehindFront, type SourceFront } from '../support/source-front.ts';
import { ok, startUpdate } from '../support/state.ts';
import { complete } from '../support/update-calls.ts';

const { source, target, home, organization } = archiveEnds();
let front: SourceFront | null = null;
beforeAll(async () => {
  front = await listenBehindFront(source);
});
afterAll(async () => front?.[Symbol.asyncDispose]());

/** An organization at both ends, with a stack that began with a state, and its import from a service or an archive. */
async function endsOf(name: string, from: 'service' | 'archive') {
  const ends = await organization(name);
  const passphrase = { type: 'passphrase', state: { salt: 'v1:AAAA:v1:BBBB:CCCC' } };
  const ref = { organization: name, project: 'proj', stack: 'dev' };
  const dev = await ends.createStack('dev', { state: stateWith(ref, 'v1:AAAA:BBBB', 0, passphrase) });
  const service = { url: front?.url ?? '', token: ends.auth.replace('token ', '') };
  return {
    ...{ ends, dev },
    update: async (version: number) =>
      runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), version)),
    pass: async (...options: string[]) => {
      if (from === 'service') return runImport(target, service, name, ...options);
      await ends.export();
      const ended = await ends.import(...options);
      return { ...ended, text: ended.text.replace(/^Not in the archive: members \(\S+\)\.\n/, '') };
    },
  };
}

test.each(['service', 'archive'] as const)(
  'the state that a stack began with has no version, so the numbers of %s stay as they are',
  async (from) => {
    const { dev, ends, pass, update } = await endsOf(`begun-${from}`, from);
    expect((await pass('--apply')).text).toBe(`Imported 0 versions of 0 stacks into begun-${from}.\n`);
    expect(await ends.here('proj/dev/export')).toEqual(await ends.there('proj/dev/export'));
    expect((await ends.here('proj/dev/updates')).updates).toEqual([]);
    expect((await pass('--verify')).text).toContain('no differences');
    expect((await pass('--apply')).code).toBe(0);
    await update(1);
    const running = await startUpdate(source, dev);
    await ok(complete(source, running, 'failed'));
    await update(3);
    expect((await pass('--apply')).text).toBe(`Imported 3 versions of 1 stack into begun-${from}.\n`);
    const numbers = ({ updates }: { updates: { version: number; message: string }[] }) =>
      updates.map(({ message, version }) => [version, message]);
    const here = numbers(await ends.here('proj/dev/updates'));
    expect(here).toEqual(numbers(await ends.there('proj/dev/updates')));
    expect(here.map(([version]) => version)).toEqual([3, 2, 1]);
    expect((await pass('--verify')).text).toContain('no differences');

    await query(
      target,
      `update updates set stack_version = 4 where stack_version = 3 and stack_id in
       (select s.id from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id where o.name = $1)`,
      [`begun-${from}`],
    );
    const verified = await pass('--verify');
    expect([verified.code, verified.text]).toEqual([
      1,
      expect.stringContaining('version 4 is version 3 in the source'),
    ]);
  },
);

test('an update that runs while a stack has no version yet leaves the next one its number', async () => {
  const { dev, ends, pass, update } = await endsOf('running', 'service');
  const running = await startUpdate(source, dev);
  expect((await pass('--apply')).text).toContain('an update is running in the source');
  await ok(complete(source, running));
  await update(2);
  expect((await pass('--apply')).text).toBe('Imported 2 versions of 1 stack into running.\n');
  expect((await ends.here('proj/dev/updates')).updates.map(({ version }: { version: number }) => version)).toEqual([
    2, 1,
  ]);
  expect((await pass('--verify')).text).toContain('no differences');
});

test('a rollback deletes a stack of which only the state came that it began with', async () => {
  const { pass } = await endsOf('taken-back', 'service');
  await pass('--apply');
  expect((await pass('--rollback', '--apply')).text).toBe('Deleted 1 stack with 0 imported versions; kept 0.\n');
});

test('the state that a stack began with has no version after an export to a folder either', async () => {
  const ends = await organization('begun-folder');
  const provider = { type: 'passphrase', state: { salt: 'v1:AAAA:v1:BBBB:CCCC' } };
  const ref = { organization: 'begun-folder', project: 'proj', stack: 'dev' };
  const stateOf = (version: number) => stateWith(ref, 'v1:AAAA:BBBB', version, provider);
  const dev = await ends.createStack('dev', { state: stateOf(0) });
  const directory = path.join(home, 'begun-folder-files');
  const location = `file://${directory}`;
  const pass = async (...options: string[]) => {
    await ends.exportFolder(location);
    return ends.importFolder(location, ...options);
  };
  expect((await pass('--apply')).text).toBe('Imported 0 versions of 0 stacks into begun-folder.\n');
  expect(await ends.here('proj/dev/export')).toEqual(await ends.there('proj/dev/export'));
  expect((await pass('--verify')).text).toContain('no differences');
  expect((await pass('--apply')).text).toBe('Imported 0 versions of 0 stacks into begun-folder.\n');
  await runUpdate(source, dev, stateOf(1));
  expect((await pass('--apply')).text).toBe('Imported 1 version of 1 stack into begun-folder.\n');
  expect((await pass('--verify')).text).toContain('no differences');
  expect((await ends.here('proj/dev/updates')).updates.map(({ version }: { version: number }) => version)).toEqual([1]);

  // Without the history, which is there already.
  expect((await ends.exportFolder(location, '--history', '0')).text).toContain('Exported 1 stack with 0 updates');

  // What the CLI has written has no mark any more.
  await ends.createStack('edited', { state: stateWith({ ...ref, stack: 'edited' }, 'v1:AAAA:BBBB', 0, provider) });
  await ends.exportFolder(location);
  const file = path.join(directory, '.pulumi/stacks/proj/edited.json');
  const { checkpoint, ...others } = JSON.parse(await readFile(file, 'utf8'));
  delete checkpoint.holdfast;
  await writeFile(file, JSON.stringify({ ...others, checkpoint }));
  expect((await ends.importFolder(location, '--apply')).text).toBe(
    'Imported 1 version of 1 stack into begun-folder.\n',
  );
});

test('a folder gets numbers in its order, and keeps those that its history has', async () => {
  const directory = path.join(home, 'numbered');
  await target.createUser('numbered', 'admin');
  const run = async (...options: string[]) => {
    const words = ['import', '--from', `file://${directory}`, '--organization', 'numbered', ...options];
    const { stderr, stdout } = await runHoldfast(importEnv(target, ''), ...words);
    return stdout + stderr;
  };
  const versions = async (stack: string) =>
    (
      await query<{ version: number }>(
        target,
        `select u.stack_version as version from updates u join stacks s on s.id = u.stack_id join projects p on p.id = s.project_id
         join organizations o on o.id = p.organization_id where o.name = 'numbered' and s.name = $1 order by 1`,
        [stack],
      )
    ).map(({ version }) => version);
  // As `pulumi stack init` leaves it.
  const fresh: DiyStack = { project: 'proj', stack: 'fresh', versions: 0, resources: 0 };
  const empty = diyCheckpoint(fresh, 0) as { checkpoint: { latest: { resources: object[] } } };
  empty.checkpoint.latest.resources = [];
  const kept: DiyStack = { project: 'proj', stack: 'kept', versions: 3 };
  const unrecorded: DiyStack = { project: 'proj', stack: 'unrecorded', versions: 0 };
  await writeDiyFolder(directory, [{ ...fresh, newest: empty }, kept, unrecorded]);
  // As `holdfast export` writes them.
  const history = path.join(directory, '.pulumi/history/proj/kept');
  const files = (await readdir(history)).filter((name) => name.endsWith('.history.json')).sort();
  for (const [at, version] of [4, 7].entries()) {
    const file = path.join(history, files[at] as string);
    await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), version }));
  }
  await mkdir(history, { recursive: true });
  expect(await run('--apply')).toBe('Imported 4 versions of 2 stacks into numbered.\n');
  expect([await versions('fresh'), await versions('kept'), await versions('unrecorded')]).toEqual([[], [4, 7, 8], [1]]);
  expect(await run('--verify')).toContain('no differences');
  expect(await run('--apply')).toBe('Imported 0 versions of 0 stacks into numbered.\n');
  await writeDiyFolder(directory, [{ ...fresh, versions: 2 }]);
  expect(await run('--apply')).toBe('Imported 2 versions of 1 stack into numbered.\n');
  expect(await versions('fresh')).toEqual([1, 2]);
  expect(await run('--verify')).toContain('no differences');
  await query(target, 'update updates set stack_version = 6 where stack_version = 7');
  expect(await run('--verify')).toContain('proj/kept: version 6 is version 7 in the source');
});
