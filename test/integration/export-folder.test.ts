import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { archiveEnds } from '../support/archive-ends.ts';
import { query } from '../support/database.ts';
import { encrypt, runUpdate, stateWith } from '../support/import-ends.ts';

const { source, home, organization } = archiveEnds();

/** An organization with a stack `dev` that has these versions, and its folder. */
async function folderOf(name: string, versions: number) {
  const ends = await organization(name);
  const directory = path.join(home, `${name}-folder`);
  const dev = await ends.createStack('dev');
  const update = async (version: number) =>
    runUpdate(source, dev, stateWith(dev, await encrypt(source, dev, '"a"'), version));
  for (let version = 1; version <= versions; version++) await update(version);
  return {
    ...{ ends, dev, update, state: path.join(directory, '.pulumi/stacks/proj/dev.json') },
    history: path.join(directory, '.pulumi/history/proj/dev'),
    locks: path.join(directory, '.pulumi/locks/organization/proj/dev'),
    run: async (...options: string[]) => {
      const { code, text } = await ends.exportFolder(`file://${directory}`, ...options);
      return [code, text] as const;
    },
  };
}

test('an export replaces its own states, and none that the CLI has changed, updated or locked in the folder', async () => {
  const { history, locks, run, state, update } = await folderOf('guarded', 1);
  expect((await run())[0]).toBe(0);
  await update(2);
  expect((await run())[0]).toBe(0);
  const exported = await readFile(state, 'utf8');
  const refused = async (reason: string) => {
    const before = await readFile(state, 'utf8');
    expect(await run()).toEqual([1, expect.stringContaining(`proj/dev: not exported: ${reason}`)]);
    expect(await readFile(state, 'utf8')).toBe(before);
  };
  // As `pulumi state delete` does, which writes no history.
  await writeFile(state, exported.replace('"id":"a"', '"id":"b"'));
  await refused('its state was changed in the folder since the last export');
  await writeFile(state, exported);

  await mkdir(locks, { recursive: true });
  await writeFile(path.join(locks, 'x.json'), '{}');
  await refused('it is locked in the folder');
  await rm(locks, { recursive: true });

  // As an update of the CLI, which has no number, before one of the server.
  const [newest] = (await readdir(history))
    .filter((name) => name.includes('.history.'))
    .sort()
    .slice(-1);
  const info = JSON.parse(gunzipSync(await readFile(path.join(history, newest as string))).toString());
  const own = path.join(history, `dev-${BigInt(Date.now()) * 1_000_000n}.history.json.gz`);
  await writeFile(own, gzipSync(JSON.stringify({ ...info, version: 0 })));
  await update(3);
  await refused('it was updated in the folder since the last export');
  await rm(own);
  expect((await run())[0]).toBe(0);
});

test('updates that ended at the same time are exported again with less history', async () => {
  const { dev, history, run } = await folderOf('ties', 3);
  await query(
    source,
    `update updates set ended_at = '2026-01-02T03:04:05Z' where stack_id = $1 and stack_version is not null`,
    [(await source.context.stacks.find(dev))?.id],
  );
  expect((await run())[0]).toBe(0);
  const files = async () => (await readdir(history)).filter((name) => name.includes('.history.')).sort();
  const before = await files();
  for (const count of ['1', '0']) expect(await run('--history', count)).toEqual([0, expect.any(String)]);
  expect(await files()).toEqual(before);
  // The name of the last one depends on it.
  await query(source, 'update updates set state_deleted_at = now() where stack_version = 2');
  expect(await run('--history', '1')).toEqual([0, expect.any(String)]);
  expect(await files()).toEqual(before);
  const versions = await Promise.all(
    before.map(async (name) => JSON.parse(gunzipSync(await readFile(path.join(history, name))).toString()).version),
  );
  expect(versions).toEqual([1, 2, 3]);
});
