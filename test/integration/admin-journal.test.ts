import { describe, expect, test } from '@jest/globals';
import { VersionRestorer } from '../../src/cli/admin/version-restorer.ts';
import { runAdminCommand, runInProcess } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, cancel, complete } from '../support/update-calls.ts';

const app = testApp();

const ref = ({ organization, project, stack }: TestStack): string => `${organization}/${project}/${stack}`;

/** Version 1 has r0. Version 2 is a cancelled update with `one`, an entry that cannot be replayed, and `two`. */
async function createFaulty(): Promise<{ stack: TestStack; update: RunningUpdate }> {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  const update = await startUpdate(app, stack, { journal: true });
  const entries = [...creation(1, 'one', stack), beginning(3, 3), removal(4, 3, 99), ...creation(5, 'two', stack)];
  await ok(append(app, update, entries));
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  expect(await exportedNames(app, stack)).toEqual(['one', 'r0']);
  return { stack, update };
}

/** Changes an entry into one that can be replayed, as if a newer release understood it. */
const makeReplayable = (update: RunningUpdate, sequenceId: number, kind = 1) =>
  query(
    app,
    `update journal_entries set entry = replace(replace(entry, '"removeOld":99', '"removeOld":0'), '"kind":77', $3)
     where update_id = $1 and sequence_id = $2`,
    [update.id, sequenceId, `"kind":${kind}`],
  );

const checkpointOf = async ({ id }: RunningUpdate) => (await app.context.updates.find(id))?.checkpointId ?? null;

/** Version 1 has `one`, and an entry of an unknown kind about `two`; `next` runs. */
async function createWithUnknownKind(): Promise<{ stack: TestStack; update: RunningUpdate; next: RunningUpdate }> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  const [begin, success] = creation(3, 'two', stack) as [object, object];
  await ok(append(app, update, [...creation(1, 'one', stack), begin, { ...success, kind: 77 }]));
  await ok(complete(app, update));
  const next = await startUpdate(app, stack, { journal: true });
  return { stack, update, next };
}

/** Version 1 has `one`, and `two` since it was recompacted after version 2, which changed nothing. */
async function createSkipped(): Promise<{ stack: TestStack; update: RunningUpdate; next: RunningUpdate }> {
  const { next, stack, update } = await createWithUnknownKind();
  await ok(complete(app, next));
  await makeReplayable(update, 4);
  const run = await runInProcess(app, 'admin', 'recompact', ref(stack));
  expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('Newer versions')]);
  return { stack, update, next };
}

async function takesUpdates(stack: TestStack): Promise<void> {
  expect((await getStack(app, stack)).journalError).toBeUndefined();
  expect((await exportState(app, stack)).headers['x-pulumi-warning']).toBeUndefined();
  await ok(complete(app, await startUpdate(app, stack, { journal: true })));
}

describe('recompact', () => {
  test('reports the reason when nothing has changed, and the stack stays blocked', async () => {
    const { stack } = await createFaulty();
    const run = await runInProcess(app, 'admin', 'recompact', ref(stack));
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('Journal entry 4: "removeOld" is 99')]);
    expect(run.stderr).toContain('3 of 6 entries can be replayed');
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 4');
  });

  test('compacts the whole journal once every entry can be replayed', async () => {
    const { stack, update } = await createFaulty();
    await makeReplayable(update, 4);
    const run = await runAdminCommand(app, 'recompact', ref(stack));
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('has all 6 entries')]);
    expect(run.stderr).toContain('"audit":"recompact"');
    expect(await exportedNames(app, stack)).toEqual(['one', 'two']);
    expect(await exportedNames(app, stack, 2)).toEqual(['one', 'two']);
    await takesUpdates(stack);
  });

  test('replays as many entries as possible and reports the next one that fails', async () => {
    const { stack, update } = await createFaulty();
    await makeReplayable(update, 4);
    await query(
      app,
      `update journal_entries set entry = replace(entry, '"kind":1', '"kind":"x"') where update_id = $1 and sequence_id = 6`,
      [update.id],
    );
    const run = await runInProcess(app, 'admin', 'recompact', ref(stack));
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('Journal entry 6')]);
    expect(await exportedNames(app, stack)).toEqual(['one']);
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 6');
  });

  test('replays entries of a kind that used to be unknown and leaves newer versions unchanged', async () => {
    const { next, stack, update } = await createWithUnknownKind();
    await ok(append(app, next, [...creation(1, 'three', stack), beginning(3, 3), removal(4, 3, 0)]));
    await makeReplayable(update, 4);
    const busy = await runInProcess(app, 'admin', 'recompact', ref(stack));
    expect([busy.code, busy.stderr]).toEqual([1, expect.stringContaining('an update is running')]);
    await ok(complete(app, next));
    const run = await runInProcess(app, 'admin', 'recompact', ref(stack));
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('Newer versions')]);
    expect(await exportedNames(app, stack, 1)).toEqual(['one', 'two']);
    expect(await exportedNames(app, stack, 2)).toEqual(['three']);
    // The base of the newer version is still stored.
    expect(await app.context.compactor.rebuild(next.id, await checkpointOf(next))).toBe(true);
    expect(await exportedNames(app, stack)).toEqual(['three']);
    await takesUpdates(stack);
  });

  test('leaves newer versions that changed nothing as they are, and the newest one the newest', async () => {
    const { next, stack, update } = await createSkipped();
    expect(await exportedNames(app, stack)).toEqual(['one']);
    expect(await exportedNames(app, stack, 2)).toEqual(['one']);
    expect(await exportedNames(app, stack, 1)).toEqual(['one', 'two']);
    expect(await checkpointOf(next)).not.toBe(await checkpointOf(update));
    expect((await runInProcess(app, 'admin', 'restore', ref(stack), '1')).code).toBe(0);
    expect(await exportedNames(app, stack)).toEqual(['one', 'two']);
  });

  test('a damaged state that newer versions still have is not repaired by replacing the one that came after it', async () => {
    const { next, stack, update } = await createSkipped();
    const [damaged, intact] = [await checkpointOf(next), await checkpointOf(update)];
    await query(app, `update checkpoints set inline_bytes = '\\x00' where id = $1`, [damaged]);
    for (const _ of [1, 2]) {
      const { status } = await app.call('GET', `${stack.path}/export/2`, { auth: stack.auth });
      expect([status, await app.context.documentReader.check(damaged as string)]).toEqual([500, 'damaged']);
    }
    expect(await checkpointOf(update)).toBe(intact);
    expect(await exportedNames(app, stack, 1)).toEqual(['one', 'two']);
  });
});

test('accept makes the replayed prefix the state; the journal is deleted after its retention time', async () => {
  const { stack, update } = await createFaulty();
  const run = await runAdminCommand(app, 'accept', ref(stack));
  expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('The first 3 of 6 journal entries are in it')]);
  expect(run.stderr).toContain('"audit":"accept"');
  expect(await exportedNames(app, stack)).toEqual(['one', 'r0']);
  await takesUpdates(stack);
  const entries = () => query(app, 'select 1 from journal_entries where update_id = $1', [update.id]);
  await query(app, `update journals set compacted_at = 'epoch' where update_id = $1`, [update.id]);
  await expireLeases(app.context);
  expect(await entries()).toHaveLength(6);
  await query(app, `update journals set accepted_at = 'epoch' where update_id = $1`, [update.id]);
  await expireLeases(app.context);
  expect(await entries()).toEqual([]);
  const again = await runInProcess(app, 'admin', 'accept', ref(stack));
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('no journal')]);
});

test('a legal hold keeps an accepted journal, some of whose entries are in no state', async () => {
  const { stack, update } = await createFaulty();
  const hold = (method: 'PUT' | 'DELETE', body?: object) =>
    ok(app.call(method, `${stack.path}/legal-hold`, { auth: stack.auth, ...(body ? { body } : {}) }));
  await hold('PUT', { reason: 'Case 7' });
  expect((await runInProcess(app, 'admin', 'accept', ref(stack))).code).toBe(0);
  await query(app, `update journals set compacted_at = 'epoch', accepted_at = 'epoch' where update_id = $1`, [
    update.id,
  ]);
  const entries = () => query(app, 'select 1 from journal_entries where update_id = $1', [update.id]);
  for (const work of [() => expireLeases(app.context), () => app.context.compactions.delete(update.id)]) {
    await work();
    expect(await entries()).toHaveLength(6);
  }
  await hold('DELETE');
  await expireLeases(app.context);
  expect(await entries()).toEqual([]);
});

describe('accept', () => {
  test('leaves the fault of a running update, which only has to be accepted when it has ended', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    const [begin, success] = creation(3, 'two', stack) as [object, object];
    await ok(append(app, update, [...creation(1, 'one', stack), begin, { ...success, kind: 77 }]));
    await app.context.compactor.compact(update.id);
    const early = await runInProcess(app, 'admin', 'accept', ref(stack));
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('its update is running')]);
    await ok(append(app, update, [beginning(5, 5), removal(6, 5, 99)]));
    await ok(cancel(app, stack, update));
    await app.context.compactor.compact(update.id);
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 6');
    const run = await runInProcess(app, 'admin', 'accept', ref(stack));
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('of 6 journal entries are in it')]);
    await takesUpdates(stack);
  });

  test('does not accept what a later compaction finds', async () => {
    const { stack, update } = await createFaulty();
    // As if its compaction had not begun.
    await query(
      app,
      `update journals set compaction_error = null, compaction_warning = 'entries 7-8 are missing', compacted_entries = 0,
         compacted_at = null where update_id = $1`,
      [update.id],
    );
    const { acceptFault, findFaults } = app.context.compactions;
    const [fault] = await findFaults((await app.context.stacks.find(stack))?.id as string);
    expect(fault && (await acceptFault(fault))).toBe(true);
    await app.context.compactor.compact(update.id);
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 4');
    expect(fault && (await acceptFault(fault))).toBe(false);
  });
});

describe('restore', () => {
  test('changes nothing if an update has run and ended meanwhile, and accepts no fault of it', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(2) }));
    const id = (await app.context.stacks.find(stack))?.id as string;
    const updates: RunningUpdate[] = [];
    /** Saves the copy after an update whose last entry cannot be replayed. */
    const documents = {
      save: async (...args: Parameters<typeof app.context.documents.save>) => {
        const update = await startUpdate(app, stack, { journal: true });
        await ok(append(app, update, [...creation(1, 'one', stack), beginning(3, 3), removal(4, 3, 99)]));
        await ok(cancel(app, stack, update));
        await app.context.compactor.compact(update.id);
        updates.push(update);
        return app.context.documents.save(...args);
      },
    } as typeof app.context.documents;
    const restored = new VersionRestorer({ ...app.context, documents }).restore(id, 1, async () => {});
    await expect(restored).rejects.toThrow('changed by someone else');
    expect(await exportedNames(app, stack)).toEqual(['one', 'r0', 'r1']);
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 4');
    expect(updates).toHaveLength(1);
  });

  test('makes an earlier state the new version, and the stack accepts updates again', async () => {
    const { stack } = await createFaulty();
    const run = await runInProcess(app, 'admin', 'restore', ref(stack), '1');
    expect([run.code, run.stdout]).toEqual([0, expect.stringContaining('is now version 3')]);
    expect((await exportState(app, stack)).text).toBe((await exportState(app, stack, 1)).text);
    const { json } = await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }));
    expect(json.updates[0]).toMatchObject({ kind: 'import', version: 3, message: 'Restored version 1' });
    await takesUpdates(stack);
  });

  test.each([
    ['9', 'no version 9'],
    ['x', 'a version is a positive whole number'],
  ])('changes nothing for version %s', async (version, problem) => {
    const { stack } = await createFaulty();
    const run = await runInProcess(app, 'admin', 'restore', ref(stack), version);
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(problem)]);
    expect((await getStack(app, stack)).journalError).toContain('Journal entry 4');
  });

  test('is rejected while an update runs', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
    await startUpdate(app, stack);
    const run = await runInProcess(app, 'admin', 'restore', ref(stack), '1');
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('in progress')]);
  });
});

describe('journal', () => {
  test('prints every entry as a line of JSON, for the newest journal or for a given version', async () => {
    const { stack } = await createFaulty();
    for (const args of [[], ['--version', '2']]) {
      const run = await runAdminCommand(app, 'journal', ref(stack), ...args);
      expect(run.code).toBe(0);
      const entries = run.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(entries.map(({ sequenceID }) => sequenceID)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(entries[3]).toMatchObject({ removeOld: 99 });
      expect(run.stderr).toContain('6 entries, 3 in the state');
    }
    const none = await runAdminCommand(app, 'journal', ref(stack), '--version', '1');
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('no journal of version 1')]);
  });

  test('prints a long journal completely and puts entries with line breaks on one line', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    const names = Array.from({ length: 2_500 }, (_, at) => `é${at}`);
    const entries = names.flatMap((name, at) => creation(1 + 2 * at, name, stack));
    const body = JSON.stringify({ entries }, null, 2);
    await ok(app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body }));
    const run = await runAdminCommand(app, 'journal', ref(stack));
    const lines = run.stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(entries.map((entry) => JSON.parse(JSON.stringify(entry))));
  });
});

test('the commands are listed in the help and require an existing stack', async () => {
  const help = await runAdminCommand(app, 'help');
  for (const command of ['recompact', 'accept', 'restore', 'journal'])
    expect(help.stdout).toContain(`  ${command} <org`);
  const run = await runAdminCommand(app, 'recompact', 'no/such/stack');
  expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('there is no stack "no/such/stack"')]);
});
