import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { exportArchive } from '../../src/cli/moving/archive/archive-export.ts';
import { createExportedStackRepository } from '../../src/shared/diy/exported-stack-repository.ts';
import type { Folder } from '../../src/shared/platform/blobs/folder.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { runAdminCommand } from '../support/admin.ts';
import { archiveEnds } from '../support/archive-ends.ts';
import { flipBit, storedBytes } from '../support/damage.ts';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith } from '../support/import-ends.ts';
import { creation } from '../support/journal-entries.ts';
import { ok, startUpdate, type TestStack } from '../support/state.ts';
import { until } from '../support/until.ts';
import { append, complete } from '../support/update-calls.ts';

const { source, organization } = archiveEnds();

type Ends = Awaited<ReturnType<typeof organization>>;

/** Exports with pages of one update. States are written once the gate is open. */
async function exportPages(
  name: string,
  { directory }: Ends,
  gate: Promise<unknown> = Promise.resolve(),
  remove: (file: string) => Promise<void> = async () => {},
) {
  const { context } = source;
  const found = await context.identity.findOrganization(name);
  if (!found) throw new Error(`There is no organization ${name}`);
  const own = await openFolder(directory, {
    ...{ region: '', endpoint: null, forcePathStyle: true, requestTimeoutMs: 1000 },
  });
  const folder: Folder = {
    list: (prefix) => own.list(prefix),
    open: (file) => own.open(file),
    write: async (file, body) => {
      if (file.includes('.state.')) await gate;
      await own.write(file, body);
    },
    delete: async (file) => {
      await remove(file);
      await own.delete(file);
    },
    close: () => own.close(),
  };
  const stacks = await createExportedStackRepository(context.db).listStacks(found.id, { project: '', stack: '' }, 100);
  const protection = { recipients: [], passphrase: 'correct horse' };
  const call = { context, folder, to: directory, organization: found, stacks, isWhole: true, protection, parallel: 1 };
  return exportArchive({ ...call, pageRows: 1 });
}

const checkpointOf = async (version: number): Promise<string> => {
  const [found] = await query<{ id: string }>(
    source,
    'select c.id from checkpoints c join updates u on u.id = c.update_id where u.stack_version = $1 order by c.id desc limit 1',
    [version],
  );
  return found?.id as string;
};

async function addVersions(stack: TestStack, versions: readonly number[]): Promise<void> {
  for (const version of versions)
    await runUpdate(source, stack, stateWith(stack, await encrypt(source, stack, '"a"'), version));
}

test('a state in the middle that can be read again comes with all that follows, and nothing before it is lost', async () => {
  const ends = await organization('middle');
  const dev = await ends.createStack('dev');
  await addVersions(dev, [1, 2, 3, 4]);
  const stored = await storedBytes(source, await checkpointOf(2));
  await stored.overwrite(flipBit(stored.bytes, stored.bytes.length >> 1, 1));
  expect((await exportPages('middle', ends)).text).toContain('proj/dev: without the state of version 2: ');
  await stored.restore();
  const whole = await exportPages('middle', ends);
  expect([whole.isComplete, whole.text]).toEqual([true, expect.stringContaining('with 4 versions')]);
  expect((await ends.import('--apply')).text).toContain('Imported 4 versions of 1 stack into middle.');
  for (const version of [1, 2, 3, 4])
    expect(await ends.here(`proj/dev/export/${version}`)).toMatchObject({
      deployment: { resources: [{}, { inputs: { version } }] },
    });
});

test('a state that lacks journal entries is named by export and import, and comes whole once it is recompacted', async () => {
  const ends = await organization('completed');
  const dev = await ends.createStack('dev');
  const update = await startUpdate(source, dev, { journal: true });
  const [begin, success] = creation(3, 'two', dev) as [object, object];
  await ok(append(source, update, [...creation(1, 'one', dev), begin, { ...success, kind: 77 }]));
  await ok(complete(source, update));
  for (const _ of ['first', 'second']) {
    const { code, text } = await ends.export();
    expect([code, text]).toEqual([0, expect.stringContaining('proj/dev: The state of version 1 (update ')]);
  }
  expect((await ends.import()).text).toContain('may be incomplete: this release does not know the kind of');
  await query(source, `update journal_entries set entry = replace(entry, '"kind":77', '"kind":1')`);
  expect((await runAdminCommand(source, 'recompact', 'completed/proj/dev')).code).toBe(0);
  expect((await ends.export()).text).not.toContain('may be incomplete');
  expect(await ends.import('--apply')).toMatchObject({ code: 0 });
  expect(await ends.here('proj/dev/export/1')).toEqual(await ends.there('proj/dev/export/1'));
});

test('one export at a time writes to an archive, and pages under a key that it lacks are written anew', async () => {
  const ends = await organization('claimed');
  const dev = await ends.createStack('dev');
  await addVersions(dev, [1, 2]);
  const gate = Promise.withResolvers<void>();
  const first = exportPages('claimed', ends, gate.promise);
  const isThere = async () => (await readdir(ends.directory)).includes('holdfast-archive.json');
  await until(() => isThere().catch(() => false), 'the first export has begun');
  const second = await ends.export();
  expect([second.code, second.text]).toEqual([1, expect.stringContaining('Another export writes to ')]);
  gate.resolve();
  expect(await first).toMatchObject({ isComplete: true });
  expect(await readdir(ends.directory)).toEqual(['holdfast-archive.json', 'stacks']);

  const file = path.join(ends.directory, 'holdfast-archive.json');
  const { sha256: _, ...manifest } = { ...JSON.parse(await readFile(file, 'utf8')), keys: [] };
  const sha256 = createHash('sha256').update(JSON.stringify(manifest)).digest('hex');
  await writeFile(file, JSON.stringify({ ...manifest, sha256 }));
  expect((await ends.export()).text).toContain('proj/dev: written anew, because the archive lacks the key of ');
  expect(await ends.import('--apply')).toMatchObject({ code: 0 });
});

test('an export that has ended is complete, although its claim stays', async () => {
  const ends = await organization('unreleased');
  await addVersions(await ends.createStack('dev'), [1]);
  const refused = async (file: string) => {
    if (file === 'holdfast-archive-run.json') throw new Error('the bucket does not answer');
  };
  expect(await exportPages('unreleased', ends, undefined, refused)).toMatchObject({ isComplete: true });
  expect(await readdir(ends.directory)).toContain('holdfast-archive-run.json');
});

test('an export that another one has replaced ends without an index or a manifest of its own', async () => {
  const ends = await organization('replaced');
  const dev = await ends.createStack('dev');
  await addVersions(dev, [1]);
  const gate = Promise.withResolvers<void>();
  const first = exportPages('replaced', ends, gate.promise);
  const run = path.join(ends.directory, 'holdfast-archive-run.json');
  const isThere = async () => (await readdir(ends.directory)).includes('holdfast-archive.json');
  await until(() => isThere().catch(() => false), 'the first export has begun');
  await writeFile(run, '{"run":"of another","beat":1}');
  gate.resolve();
  await expect(first).rejects.toThrow('Another export writes to ');
  expect(await readFile(run, 'utf8')).toContain('of another');
  expect(JSON.parse(await readFile(path.join(ends.directory, 'holdfast-archive.json'), 'utf8'))).toMatchObject({
    ...{ isComplete: false, stacks: [] },
  });
});
