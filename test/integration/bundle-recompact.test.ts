import { mkdtempSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { commitStack } from '../../src/cli/moving/stack-commit.ts';
import type { StackRow } from '../../src/shared/stacks/stack-repository.ts';
import { createCheckpointRepository } from '../../src/shared/state/checkpoints/checkpoint-repository.ts';
import { storeDeployment } from '../../src/shared/state/checkpoints/save-document.ts';
import { runHoldfast } from '../support/admin.ts';
import { bundlePassphrase, importState, readBundled, runBundle, textOf, updateInBundle } from '../support/bundle.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { exportedNames, exportState } from '../support/stack-state.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { masterKeys, testApp } from '../support/test-app.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

const app = testApp();
const home = mkdtempSync(path.join(tmpdir(), 'holdfast-bundle-recompact-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let folders = 0;

function namesIn({ checkpoint }: Awaited<ReturnType<typeof readBundled>>) {
  return checkpoint.latest.resources.map(({ urn }) => urn.split('::').at(-1));
}

/** Version 2, without an entry of an unknown kind, is in the bundle; since then it was recompacted with it. */
async function createRecompacted() {
  const directory = path.join(home, String(++folders));
  const run = () => runBundle(app, `file://${directory}`);
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  const update = await startUpdate(app, stack, { journal: true });
  const [begin, success] = creation(3, 'two', stack) as [object, object];
  await ok(append(app, update, [...creation(1, 'one', stack), begin, { ...success, kind: 77 }]));
  await ok(complete(app, update));
  await run();
  const names = async () => namesIn(await readBundled(directory, stack));
  expect(await names()).toEqual(['one', 'r0']);
  await query(
    app,
    `update journal_entries set entry = replace(entry, '"kind":77', '"kind":1') where update_id = $1 and sequence_id = 4`,
    [update.id],
  );
  const recompact = async () => {
    expect(await app.context.compactor.recompact(update.id)).toMatchObject({ committed: true, warning: null });
    expect(await exportedNames(app, stack)).toEqual(['one', 'two', 'r0']);
  };
  const history = path.join(directory, stack.organization, '.pulumi/history/proj/dev');
  const files = async () => (await readdir(history)).toSorted();
  const written = await files();
  const checkpoint = written.filter((name) => name.includes('.checkpoint.')).at(-1) as string;
  const namesInHistory = async () =>
    namesIn(JSON.parse(textOf(checkpoint, await readFile(path.join(history, checkpoint)))));
  expect(await namesInHistory()).toEqual(['one', 'r0']);
  return { directory, files, names, namesInHistory, recompact, run, stack, written };
}

/** What a return would do with the stack. */
async function planReturn(directory: string, { organization }: TestStack) {
  const { stdout } = await runHoldfast(
    {
      ...{ PATH: process.env['PATH'], HOLDFAST_DATABASE_URL: app.database.url, HOLDFAST_DATA_DIR: app.dataDir },
      ...{ HOLDFAST_MASTER_KEYS: masterKeys, HOLDFAST_BUNDLE_PASSPHRASE: bundlePassphrase },
      HOLDFAST_BUNDLE_URL: `file://${directory}`,
    },
    ...['bundle', 'return', '--stack', 'proj/dev', '--json'],
  );
  const { stacks } = JSON.parse(stdout) as { stacks: { stack: string; action: string; reason: string }[] };
  return stacks.find((each) => each.stack === `${organization}/proj/dev`);
}

test('the bundle gets the state of a version that was completed after it was written', async () => {
  const { files, names, namesInHistory, recompact, run, written } = await createRecompacted();
  await recompact();
  await run();
  expect(await names()).toEqual(['one', 'two', 'r0']);
  expect(await namesInHistory()).toEqual(['one', 'two', 'r0']);
  expect(await files()).toEqual(written);
});

test('a running update hides no version that was completed after it was written', async () => {
  const { directory, files, names, namesInHistory, recompact, run, stack, written } = await createRecompacted();
  await recompact();
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await query(
    app,
    'update bundled_stacks b set changed_at = c.changed_at from stack_changes c where c.stack_id = b.stack_id and b.organization = $1',
    [stack.organization],
  );
  const findings = async () =>
    (await fsck(app.context, { fixes: false, sample: null, ring: keyRingOf(masterKeys) })).findings.filter(
      ({ kind }) => kind === 'bundle-queue',
    );
  expect(await findings()).toHaveLength(1);
  const runAgain = async () => {
    await query(app, 'update bundled_stacks set changed_at = null');
    await run();
    return readBundled(directory, stack);
  };
  const state = await runAgain();
  expect(await names()).toEqual(['one', 'two', 'r0']);
  expect(await namesInHistory()).toEqual(['one', 'two', 'r0']);
  expect(await files()).toEqual(written);
  expect(await findings()).toEqual([]);
  expect(await runAgain()).toEqual(state);
  await ok(complete(app, update));
});

test('a later version hides no version that was completed after it was written', async () => {
  const { directory, files, namesInHistory, recompact, run, stack, written } = await createRecompacted();
  await recompact();
  const update = await startUpdate(app, stack);
  await ok(saveState(app, update, 3));
  await ok(complete(app, update));
  await run();
  expect((await readBundled(directory, stack)).checkpoint.latest.resources).toHaveLength(3);
  expect(await namesInHistory()).toEqual(['one', 'two', 'r0']);
  expect((await files()).slice(0, written.length)).toEqual(written);
  expect(await files()).toHaveLength(written.length + 2);
});

test('the checkpoints of a running update change nothing in the bundle', async () => {
  const directory = path.join(home, String(++folders));
  const run = () => runBundle(app, `file://${directory}`);
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  const before = await readBundled(directory, stack);
  const update = await startUpdate(app, stack);
  await run();
  await ok(saveState(app, update, 2));
  const { findings } = await fsck(app.context, { fixes: false, sample: null, ring: keyRingOf(masterKeys) });
  expect(findings.filter(({ kind }) => kind === 'bundle-queue')).toEqual([]);
  await query(app, 'update bundled_stacks set changed_at = null');
  await run();
  expect(await readBundled(directory, stack)).toEqual(before);
  await ok(complete(app, update));
  await run();
  expect((await readBundled(directory, stack)).checkpoint.latest.resources).toHaveLength(2);
});

test('no versions are added to a stack whose version was completed since they were planned', async () => {
  const { recompact, stack } = await createRecompacted();
  const ref = { organization: stack.organization, project: stack.project, stack: stack.stack };
  const commit = ({ checkpointId, id, stackVersion }: StackRow) =>
    commitStack(
      { context: app.context, organization: { id: '', name: stack.organization }, from: 'a bundle' },
      { ref, tags: null, quarantine: null, head: { stackId: id, stackVersion, checkpointId }, formerNames: [] },
      ...([[], { isLast: true }] as const),
    );
  const found = async () => (await app.context.stacks.find(ref)) as StackRow;
  const planned = await found();
  await recompact();
  await expect(commit(planned)).rejects.toThrow('was changed here during the import');
  const now = await found();
  expect(await commit(now)).toEqual({ stackId: now.id, stackVersion: 2, checkpointId: now.checkpointId });
});

test('a stack whose version was completed after it was written, and that was changed in the bundle, has moved on both sides', async () => {
  const { directory, recompact, run, stack } = await createRecompacted();
  await updateInBundle(directory, stack, 'emergency');
  const planned = () => planReturn(directory, stack);
  expect(await planned()).toMatchObject({ action: 'return' });
  await recompact();
  const refused = { action: 'refused', reason: expect.stringContaining('moved on both sides') };
  expect(await planned()).toMatchObject(refused);
  // Nor does the worker forget it.
  await run();
  expect(await planned()).toMatchObject(refused);
});

test('another document of the same state is no change here: what was changed in the bundle returns', async () => {
  const directory = path.join(home, String(++folders));
  const run = () => runBundle(app, `file://${directory}`);
  const stack = await createStack(app);
  await importState(app, stack, 1);
  await run();
  await updateInBundle(directory, stack, 'after-damage');
  const [head] = await query<{ updateId: string; stackId: string; foundCheckpointId: string }>(
    app,
    `select c.update_id as "updateId", c.stack_id as "stackId", c.id as "foundCheckpointId" from checkpoints c
     join stacks s on s.checkpoint_id = c.id join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
     where o.name = $1`,
    [stack.organization],
  );
  const text = Buffer.from(JSON.stringify((await exportState(app, stack)).json));
  const document = await storeDeployment(app.context.documents, async function* () {
    yield text;
  });
  const replaced = head && (await createCheckpointRepository(app.context.db).replace(head, document));
  expect(replaced).toEqual(expect.any(String));
  expect(await planReturn(directory, stack)).toMatchObject({ action: 'return' });
  await run();
  expect(await planReturn(directory, stack)).toMatchObject({ action: 'return' });
});
