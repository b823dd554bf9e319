import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { Folder } from '../../src/shared/platform/blobs/folder.ts';
import { openFolder } from '../../src/shared/platform/blobs/open-folder.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { runHoldfast } from '../support/admin.ts';
import { bundlePassphrase, importState, readBundled, runBundle, textOf, updateInBundle } from '../support/bundle.ts';
import { holdInserts, query } from '../support/database.ts';
import { createStack, ok, type TestStack } from '../support/state.ts';
import { masterKeys, testApp } from '../support/test-app.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bundle-races-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;

/** A stack with one version in a bundle, and another one here that a worker is to write. */
async function outdated() {
  const directory = path.join(home, String(++folders));
  const stack = await createStack(app);
  const inHistory = path.join(directory, stack.organization, '.pulumi/history/proj/dev');
  const run = (interfere: (folder: Folder) => void = () => undefined) =>
    runBundle(app, `file://${directory}`, {
      open: async () => {
        const folder = await openFolder(`file://${directory}`, {} as never);
        interfere(folder);
        return folder;
      },
    });
  await importState(app, stack, 1);
  await run();
  await importState(app, stack, 3);
  /** The versions in the history of the bundle, oldest first; those of the CLI are 0. */
  const versions = async (): Promise<number[]> => {
    const names = (await readdir(inHistory)).filter((name) => name.includes('.history.')).toSorted();
    return Promise.all(
      names.map(async (name) => JSON.parse(textOf(name, await readFile(path.join(inHistory, name)))).version ?? 0),
    );
  };
  const resources = async () => (await readBundled(directory, stack)).checkpoint.latest.resources.length;
  return { directory, stack, run, versions, resources, planReturn: () => planReturn(directory, stack) };
}

function returnFrom(directory: string, ...options: string[]) {
  const env = {
    ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
    ...{ HOLDFAST_MASTER_KEYS: masterKeys, HOLDFAST_BUNDLE_PASSPHRASE: bundlePassphrase },
    HOLDFAST_BUNDLE_URL: `file://${directory}`,
  };
  return runHoldfast(env, 'bundle', 'return', ...options);
}

/** Locks the stack as the CLI does; returns the folder of its locks. */
async function lockInBundle(directory: string, { organization, project, stack }: TestStack): Promise<string> {
  const locks = path.join(directory, organization, '.pulumi/locks/organization', project, stack);
  await mkdir(locks, { recursive: true });
  await writeFile(path.join(locks, 'x.json'), '{}');
  return locks;
}

/** What a return would do with the stack, and why. */
async function planReturn(directory: string, { organization }: TestStack) {
  const { stdout } = await returnFrom(directory, '--json');
  const { stacks } = JSON.parse(stdout) as { stacks: { stack: string; action: string; reason: string }[] };
  const { action, reason } = stacks.find((each) => each.stack === `${organization}/proj/dev`) ?? {};
  return [action, reason];
}

const errorOf = async ({ organization }: TestStack) =>
  (await query<{ error: string }>(app, 'select error from bundled_stacks where organization = $1', [organization]))[0]
    ?.error;

/** Runs `work` once, when a worker has looked for locks of the stack. */
const afterCheck = (work: () => Promise<unknown>) => (folder: Folder) => {
  const list = folder.list.bind(folder);
  let isDone = false;
  folder.list = async function* (prefix) {
    yield* list(prefix);
    if (isDone || !prefix.includes('/locks/')) return;
    isDone = true;
    await work();
  };
};

/** Runs `work` once, when a worker begins to write. */
const afterBegin = (work: () => Promise<unknown>) => (folder: Folder) => {
  const write = folder.write.bind(folder);
  let isDone = false;
  folder.write = async (name, body, signal) => {
    if (!isDone && name.includes('/history/')) {
      isDone = true;
      await work();
    }
    await write(name, body, signal);
  };
};

test('a version that ends while its stack is written is in the history once', async () => {
  const { run, resources, stack, versions } = await outdated();
  await run(afterCheck(() => importState(app, stack, 4)));
  expect([await versions(), await resources()]).toEqual([[1, 2, 3], 4]);
});

test('a stack that is locked in the bundle while a worker writes it keeps its state and history', async () => {
  const { directory, run, resources, stack, versions } = await outdated();
  let locks = '';
  await run(
    afterBegin(async () => {
      locks = await lockInBundle(directory, stack);
    }),
  );
  expect([await errorOf(stack), await versions(), await resources()]).toEqual(['it is locked in the bundle', [1], 1]);
  rmSync(locks, { recursive: true });
  await query(app, 'update bundled_stacks set postponed_until = null');
  await run();
  expect([await errorOf(stack), await versions(), await resources()]).toEqual([null, [1, 2], 3]);
});

test('a stack that is updated in the bundle while a worker writes it is not overwritten, and has moved on both sides', async () => {
  const { directory, planReturn: plan, run, resources, stack, versions } = await outdated();
  await run(afterBegin(() => updateInBundle(directory, stack, 'emergency')));
  expect(await errorOf(stack)).toContain('it was changed in the bundle');
  expect([await versions(), await resources()]).toEqual([[1, 0], 2]);
  expect(await plan()).toEqual(['refused', expect.stringContaining('moved on both sides')]);
});

test('an update in the bundle whose state a frozen worker overwrites is named until somebody has taken its state', async () => {
  const { directory, planReturn: plan, run, resources, stack, versions } = await outdated();
  await run((folder) => {
    const write = folder.write.bind(folder);
    folder.write = async (name, body, signal) => {
      if (!name.endsWith('dev.json')) return write(name, body, signal);
      // The last look of the worker is at the end of the body.
      const chunks = await Array.fromAsync(body);
      await updateInBundle(directory, stack, 'emergency');
      await write(name, bytesOf(Buffer.concat(chunks))(), signal);
    };
  });
  const isNamed = async () => {
    const named = expect.stringMatching(/^a worker wrote over the state of update \d+ in the bundle/);
    expect([await errorOf(stack), await plan()]).toEqual([named, ['refused', named]]);
    expect([await versions(), await resources()]).toEqual([[1, 2, 0], 3]);
  };
  await isNamed();
  await importState(app, stack, 4);
  await query(app, 'update bundled_stacks set postponed_until = null');
  await run();
  await isNamed();
  const history = path.join(directory, stack.organization, '.pulumi/history/proj/dev');
  const names = await readdir(history);
  rmSync(path.join(history, names.find((name) => name.endsWith('.checkpoint.json')) as string));
  await query(app, 'update bundled_stacks set postponed_until = null');
  await run();
  expect([await errorOf(stack), await plan(), await resources()]).toEqual([null, ['unchanged', ''], 4]);
});

test('a stack that is updated in the bundle after a worker was killed before its state has moved on both sides', async () => {
  const { directory, planReturn: plan, run, resources, stack } = await outdated();
  await run((folder) => {
    const write = folder.write.bind(folder);
    folder.write = (name, body, signal) => {
      if (name.endsWith('dev.json')) throw new Error('killed');
      return write(name, body, signal);
    };
  });
  await updateInBundle(directory, stack, 'emergency');
  expect(await resources()).toBe(2);
  expect(await plan()).toEqual(['refused', expect.stringContaining('moved on both sides')]);
});

test('a return of a stack that there is not fails, and one that is no longer in the bundle is named', async () => {
  const { directory, stack } = await outdated();
  const typo = await returnFrom(directory, '--apply', '--stack', 'proj/typo');
  expect([typo.code, typo.stderr]).toEqual([1, expect.stringContaining('there is no stack "proj/typo" in file://')]);
  rmSync(path.join(directory, stack.organization, '.pulumi/stacks/proj/dev.json'));
  const removed = await returnFrom(directory, '--stack', 'proj/dev');
  expect([removed.code, removed.stdout]).toEqual([1, expect.stringContaining('it is no longer in the bundle')]);
});

test('a return sees what was done in the bundle while it imported other stacks', async () => {
  const directory = path.join(home, String(++folders));
  const stacks = [await createStack(app), await createStack(app), await createStack(app)];
  for (const stack of stacks) await importState(app, stack, 1);
  await runBundle(app, `file://${directory}`);
  for (const stack of stacks) await updateInBundle(directory, stack, 'first');
  const inOrder = stacks.toSorted((a, b) => (a.organization < b.organization ? -1 : 1));
  const [held, locked, updated] = inOrder as [TestStack, TestStack, TestStack];
  await using gate = await holdInserts(app, 'imported_versions');
  const running = returnFrom(directory, '--apply', '--json');
  await gate.reached(1);
  await lockInBundle(directory, locked);
  await updateInBundle(directory, updated, 'second');
  await gate.release();
  const found = JSON.parse((await running).stdout).stacks as { stack: string; action: string; reason: string }[];
  const of = (stack: TestStack) => found.find((each) => each.stack === `${stack.organization}/proj/dev`);
  expect(of(held)).toMatchObject({ action: 'returned' });
  expect(of(locked)).toMatchObject({
    action: 'refused',
    reason: expect.stringContaining('it is locked in the bundle'),
  });
  const { updates } = (await ok(app.call('GET', `${updated.path}/updates`, { auth: updated.auth }))).json;
  expect(updates.map(({ message }: { message: string }) => message).slice(0, 2)).toEqual(['second', 'first']);
});

test('a return sees a lock of a stack that comes while it imports another one of the organization', async () => {
  const directory = path.join(home, String(++folders));
  const first = await createStack(app);
  const second = { ...first, stack: 'later', path: first.path.replace(/dev$/, 'later') };
  await ok(
    app.call('POST', `/api/stacks/${first.organization}/proj`, { auth: first.auth, body: { stackName: 'later' } }),
  );
  for (const stack of [first, second]) await importState(app, stack, 1);
  await runBundle(app, `file://${directory}`);
  for (const stack of [first, second]) await updateInBundle(directory, stack, 'emergency');
  await using gate = await holdInserts(app, 'imported_versions');
  const running = returnFrom(directory, '--apply', '--json');
  await gate.reached(1);
  await lockInBundle(directory, second);
  await gate.release();
  const { stacks } = JSON.parse((await running).stdout) as { stacks: { stack: string; action: string }[] };
  expect(stacks.find(({ stack }) => stack === `${first.organization}/proj/later`)).toMatchObject({ action: 'refused' });
});
