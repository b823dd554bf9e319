import { describe, expect, test } from '@jest/globals';
import { readStateFacts } from '../../src/cli/moving/state-facts.ts';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import { runAdminCommand } from '../support/admin.ts';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { ask } from '../support/procedures.ts';
import { exportedNames, exportState } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, cancel, complete, expire, getUpdate } from '../support/update-calls.ts';

const app = testApp();

const create = (stack: TestStack) => app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });

/** Ways in which an update ends without being completed as successful. */
const ends: Record<string, (stack: TestStack, update: RunningUpdate) => Promise<unknown>> = {
  'complete as failed': (_, update) => ok(complete(app, update, 'failed')),
  cancel: (stack, update) => ok(cancel(app, stack, update)),
  'the sweep after the lease': async (_, update) => {
    await expire(app, update.id);
    await expireLeases(app.context);
  },
  'a start after the lease': async (stack, update) => {
    await expire(app, update.id);
    await ok(create(stack));
  },
  'complete as succeeded, which is refused, and then cancel': async (stack, update) => {
    expect((await complete(app, update)).status).toBe(409);
    await ok(cancel(app, stack, update));
  },
  'an export, which compacts, and then cancel': async (stack, update) => {
    await app.context.compactor.compact(update.id);
    await ok(cancel(app, stack, update));
  },
  'the loss of the rights under which it runs': async (_, update) => {
    await query(app, `update updates set end_reason = 'grant-ended', expires_at = clock_timestamp() where id = $1`, [
      update.id,
    ]);
    await expireLeases(app.context);
  },
};

/** A running update whose journal lacks the entries 3, 4 and 7. */
async function startWithGap(): Promise<{ stack: TestStack; update: RunningUpdate }> {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, [...creation(1, 'one', stack), ...creation(5, 'three', stack)]));
  await ok(append(app, update, creation(8, 'five', stack)));
  return { stack, update };
}

const warningOf = async (stack: TestStack, path: string): Promise<string | undefined> => {
  const { headers } = await ok(app.call('GET', `${stack.path}/${path}`, { auth: stack.auth }));
  return headers['x-pulumi-warning'] as string | undefined;
};

describe('complete of a journal with a gap', () => {
  test('is refused and names the missing entries, again when it is repeated; the update goes on', async () => {
    const { stack, update } = await startWithGap();
    for (let attempt = 0; attempt < 2; attempt++) {
      const refused = await complete(app, update);
      expect([refused.status, refused.json.message]).toEqual([409, expect.stringContaining('3-4, 7')]);
      expect(refused.json.message).toContain('pulumi cancel');
      expect(refused.json.message).toContain('`pulumi state repair` and `pulumi refresh`');
    }
    expect((await getUpdate(app, stack, update)).status).toBe('running');
  });

  test('succeeds once they have arrived, and nothing warns then', async () => {
    const { stack, update } = await startWithGap();
    expect((await complete(app, update)).status).toBe(409);
    // An export while entries arrive out of order says nothing of it.
    expect(await warningOf(stack, 'export')).toBeUndefined();
    await ok(append(app, update, [...creation(3, 'two', stack), beginning(7, 7)]));
    expect((await ok(complete(app, update))).headers['x-pulumi-warning']).toBeUndefined();
    expect(await exportedNames(app, stack)).toEqual(['one', 'two', 'three', 'five']);
    expect(await warningOf(stack, 'export')).toBeUndefined();
  });

  test('as failed ends the update, and the response names the missing entries, also when repeated', async () => {
    const { stack, update } = await startWithGap();
    for (let attempt = 0; attempt < 2; attempt++) {
      const { headers } = await ok(complete(app, update, 'failed'));
      expect(headers['x-pulumi-warning']).toContain('3-4, 7');
      expect(headers['x-pulumi-warning']).toContain('Run pulumi state repair, then pulumi refresh');
    }
    expect((await getUpdate(app, stack, update)).status).toBe('failed');
  });

  test('names the first entry, and many gaps by the first of them and a count', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(
      append(
        app,
        update,
        Array.from({ length: 30 }, (_, at) => beginning(2 * at + 2, at)),
      ),
    );
    const { message } = (await complete(app, update)).json;
    expect(message).toContain('1, 3, 5,');
    expect(message).toContain('and 10 more');
    expect(message).not.toContain('59');
  });
});

describe.each(Object.entries(ends))('an update with a gap that is ended by %s', (_name, end) => {
  test('has a fault, and its stack accepts the next update', async () => {
    const { stack, update } = await startWithGap();
    await end(stack, update);
    // Before and after the journal is compacted and read back.
    for (const isCompacted of [false, true]) {
      if (isCompacted) await app.context.compactor.compact(update.id);
      expect(await exportedNames(app, stack)).toEqual(['one', 'three', 'five']);
      expect(await warningOf(stack, 'export')).toContain('3-4, 7');
      expect(await warningOf(stack, 'export/1')).toContain('3-4, 7');
    }
    const [event] = await query(
      app,
      `select details::json ->> 'missingEntries' as missing from audit_events
       where update_id = $1 and action in ('update.end', 'update.cancel', 'update.expire') and outcome = 'done'`,
      [update.id],
    );
    expect(event).toEqual({ missing: '3-4, 7' });
    const { updates } = (await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }))).json;
    expect(updates.at(-1)).toMatchObject({ version: 1, missingEntries: '3-4, 7' });
    await ok(cancelIfAny(stack));
    await ok(create(stack));
  });
});

async function cancelIfAny(stack: TestStack) {
  const { activeUpdate } = (await ok(app.call('GET', stack.path, { auth: stack.auth }))).json;
  return activeUpdate === ''
    ? app.call('GET', stack.path, { auth: stack.auth })
    : cancel(app, stack, { path: `${stack.path}/update/${activeUpdate}` });
}

test('the pages show it: the update, the list of updates, the stack', async () => {
  const { stack, update } = await startWithGap();
  await ok(cancel(app, stack, update));
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const read = async (procedure: string, input: object) =>
    (await ask(app, stack.auth.replace('token ', ''), procedure, { ...ref, ...input })).data;
  expect(await read('updates.get', { updateId: update.id })).toMatchObject({ missingEntries: '3-4, 7' });
  expect((await read('updates.list', {})).items).toMatchObject([{ missingEntries: '3-4, 7' }]);
  expect((await read('stacks.get', {})).fault).toEqual({ kind: 'warning', message: expect.stringContaining('3-4, 7') });
});

test('the CLI refuses a resource whose dependency was lost, so the first remedy is the one that it does not refuse', async () => {
  const stack = await createStack(app);
  await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: deployment(1) }));
  const update = await startUpdate(app, stack, { journal: true });
  const { resources } = (await exportState(app, stack)).json.deployment;
  const [begin, success] = creation(3, 'new', stack) as [object, { state: object }];
  const dependent = { ...success, state: { ...success.state, dependencies: [resources[0].urn] } };
  await ok(append(app, update, [begin, dependent]));
  await ok(cancel(app, stack, update));
  const { headers, text } = await exportState(app, stack);
  expect((await readStateFacts(bytesOf(Buffer.from(text))())).fault).toContain('which is not before it');
  expect(headers['x-pulumi-warning']).toContain('Run pulumi state repair, then pulumi refresh');
});

test('the metric says that entries are missing, not that their kind is unknown, until an operator accepts it', async () => {
  const before = await app.context.compactions.countFaultyStacks();
  const { stack, update } = await startWithGap();
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  const missing = before.missingEntries + 1;
  expect(await app.context.compactions.countFaultyStacks()).toEqual({ ...before, missingEntries: missing });
  expect(await app.context.metrics.registry.metrics()).toMatch(
    new RegExp(`holdfast_stacks_with_journal_errors\\{reason="missing-entries"\\} ${missing}`),
  );
  const { organization, project, stack: name } = stack;
  const recompacted = await runAdminCommand(app, 'recompact', `${organization}/${project}/${name}`);
  expect([recompacted.code, recompacted.stderr]).toEqual([1, expect.stringContaining('entries 3-4, 7 are missing')]);
  expect(await app.context.compactions.countFaultyStacks()).toEqual({ ...before, missingEntries: missing });
  await runAdminCommand(app, 'accept', `${organization}/${project}/${name}`);
  expect(await app.context.compactions.countFaultyStacks()).toEqual(before);
});

test('a journal with a gap may have entries of an unknown kind, too', async () => {
  const before = await app.context.compactions.countFaultyStacks();
  const { stack, update } = await startWithGap();
  await ok(append(app, update, [{ ...beginning(10, 10), kind: 77 }]));
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  expect(await app.context.compactions.countFaultyStacks()).toEqual({
    ...{ error: before.error, unknownKind: before.unknownKind + 1, missingEntries: before.missingEntries + 1 },
  });
});

test('an operator accepts it; the history still shows the missing entries', async () => {
  const { stack, update } = await startWithGap();
  await ok(cancel(app, stack, update));
  await app.context.compactor.compact(update.id);
  const [row] = await query(app, 'select stack_id from updates where id = $1', [update.id]);
  const { acceptFault, findFaults } = app.context.compactions;
  for (const fault of await findFaults(String(row?.stack_id))) expect(await acceptFault(fault)).toBe(true);
  expect(await warningOf(stack, 'export')).toBeUndefined();
  const { updates } = (await ok(app.call('GET', `${stack.path}/updates`, { auth: stack.auth }))).json;
  expect(updates).toMatchObject([{ missingEntries: '3-4, 7' }]);
});

test('a fault of an entry behind the gap names the gap, too', async () => {
  const { stack, update } = await startWithGap();
  await ok(append(app, update, [removal(12, 12, 99)]));
  await ok(cancel(app, stack, update));
  const warning = await warningOf(stack, 'export');
  expect(warning).toContain('Journal entry 12');
  expect(warning).toContain('3-4, 7, 10-11');
});
