import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { comparable, loadSmallCases } from '../fixtures/journal/journal-cases.ts';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { replayJournal } from '../support/replay-journal.ts';
import { exportedNames, exportState, getStack } from '../support/stack-state.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { contractAccept, createTestApp, type TestApp, testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, getUpdate } from '../support/update-calls.ts';

const app = testApp();

/** Entries that no release can replay, by what is wrong with them. */
const badEntries: Record<string, (sequenceId: number) => object> = {
  'a position outside the base': (sequenceId) => removal(sequenceId, sequenceId, 99),
  'a field of the wrong type': (sequenceId) => ({ ...beginning(sequenceId, 1), operationID: 'one' }),
  'a new base after changes': (sequenceId) => ({ ...beginning(sequenceId, 1), kind: 5, newSnapshot: {} }),
  'a migration of the state without a new resource': (sequenceId) => ({
    ...removal(sequenceId, 0, 0),
    version: 2,
    kind: 10,
  }),
};
const outside = badEntries['a position outside the base'] as (sequenceId: number) => object;

const ends: Record<string, (stack: TestStack, update: RunningUpdate) => Promise<unknown>> = {
  cancel: (stack, update) => ok(cancel(app, stack, update)),
  'the sweep after the lease': async (_, update) => {
    await expire(app, update.id);
    await expireLeases(app.context);
  },
  'a start after the lease': async (stack, update) => {
    await expire(app, update.id);
    await app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });
  },
  'complete, which is rejected, and then cancel': async (stack, update) => {
    const refused = await complete(app, update);
    expect([refused.status, refused.json.message]).toEqual([400, expect.stringContaining('Journal entry')]);
    expect((await getUpdate(app, stack, update)).status).toBe('running');
    await ok(cancel(app, stack, update));
  },
};

const path = ({ organization, project, stack }: TestStack): string => `${organization}/${project}/${stack}`;

const create = (stack: TestStack) => app.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} });

async function compactionError(update: RunningUpdate) {
  const [row] = await query(
    app,
    'select compaction_error, compacted_entries, entry_count, compacted_at is not null as read_back from journals where update_id = $1',
    [update.id],
  );
  return row;
}

/** A stack whose cancelled update has two resources followed by an entry that cannot be replayed. */
async function createFaulty(on: TestApp = app): Promise<{ stack: TestStack; update: RunningUpdate }> {
  const stack = await createStack(on);
  const update = await startUpdate(on, stack, { journal: true });
  await ok(append(on, update, [...creation(1, 'one', stack), ...creation(3, 'two', stack), outside(5)]));
  await ok(append(on, update, creation(6, 'lost', stack)));
  await ok(cancel(on, stack, update));
  await on.context.compactor.compact(update.id);
  return { stack, update };
}

describe('the state is made of the entries before the one that cannot be replayed', () => {
  const positions: [name: string, before: number, after: number][] = [
    ['the first', 0, 3],
    ['in the middle', 2, 2],
    ['the last', 3, 0],
  ];

  test.each(positions.flatMap((position) => Object.keys(ends).map((end) => [...position, end] as const)))(
    'the entry is %s (%i resources before, %i after); ended by %s',
    async (_name, before, after, end) => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack, { journal: true });
      const names = Array.from({ length: before + after }, (_, at) => `r${at}`);
      const entries = names.map((name, at) => creation(1 + 2 * at + (at < before ? 0 : 1), name, stack));
      await ok(append(app, update, [...entries.flat(), outside(1 + 2 * before)]));
      await ends[end]?.(stack, update);
      // The first reader finds it.
      expect(await exportedNames(app, stack)).toEqual(names.slice(0, before));
      expect(await exportedNames(app, stack, 1)).toEqual(names.slice(0, before));
      await app.context.compactor.compact(update.id);
      expect(await compactionError(update)).toEqual({
        compaction_error: expect.stringContaining(`Journal entry ${1 + 2 * before}: "removeOld" is 99`),
        compacted_entries: 2 * before,
        entry_count: 2 * (before + after) + 1,
        read_back: true,
      });
    },
  );

  test.each(Object.entries(badEntries))('%s', async (_name, bad) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, [...creation(1, 'one', stack), bad(3), ...creation(4, 'two', stack)]));
    await ok(cancel(app, stack, update));
    expect(await exportedNames(app, stack)).toEqual(['one']);
  });

  test.each([1, 7, 30])(
    'an alias shared by two resources, which is only visible in the whole state (%i entries later)',
    async (later) => {
      const stack = await createStack(app);
      const update = await startUpdate(app, stack, { journal: true });
      const own = (sequenceId: number, name: string): object[] => {
        const [begin, success] = creation(sequenceId, name, stack) as [object, { state: object }];
        return [begin, { ...success, state: { ...success.state, aliases: ['urn:pulumi:dev::proj::t::old'] } }];
      };
      const names = Array.from({ length: later }, (_, at) => `later${at}`);
      const rest = names.flatMap((name, at) => creation(11 + 2 * at, name, stack));
      const first = [...creation(1, 'a', stack), ...own(3, 'b'), ...creation(5, 'c', stack), ...own(7, 'd')];
      await ok(append(app, update, [...first, ...creation(9, 'e', stack), ...rest]));
      expect((await complete(app, update)).status).toBe(400);
      await ok(cancel(app, stack, update));
      const exported = await exportState(app, stack);
      // The begin entry of the resource that used the alias a second time is the last entry of the state.
      expect(await exportedNames(app, stack)).toEqual(['a', 'b', 'c']);
      expect(exported.json.deployment.pending_operations).toMatchObject([{ type: 'creating' }]);
      expect(exported.headers['x-pulumi-warning']).toMatch(/Journal entry 8: .*alias.*The first 7 of/);
    },
  );

  test('a bad entry that arrives late excludes the entries after it, including already compacted ones', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, [...creation(1, 'one', stack), ...creation(4, 'two', stack)]));
    await app.context.compactor.compact(update.id);
    await ok(append(app, update, [outside(3)]));
    await ok(cancel(app, stack, update));
    expect(await exportedNames(app, stack)).toEqual(['one']);
  });

  test('with a bad first entry, the state is the base byte for byte, whatever was compacted before', async () => {
    const stack = await createStack(app);
    const document = '{"version":3, "deployment":{"resources":[{"urn":"urn:pulumi:dev::proj::t::kept"}],"n":1.0}}';
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: document }));
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, creation(2, 'late', stack)));
    await app.context.compactor.compact(update.id);
    expect(await exportedNames(app, stack)).toEqual(['late', 'kept']);
    await ok(append(app, update, [outside(1)]));
    await ok(cancel(app, stack, update));
    expect((await exportState(app, stack)).text).toBe(document);
    expect((await exportState(app, stack, 2)).text).toBe(document);
  });

  test('holds for recorded journals with one bad entry', async () => {
    const cases = loadSmallCases().filter(({ arrivalOutOfOrder, entries }) => !arrivalOutOfOrder && entries.length > 0);
    const manifest = { time: '2026-01-01T00:00:00Z', version: '' };
    const anyJournal = fc
      .constantFrom(...cases)
      .chain((recorded) =>
        fc.tuple(
          fc.constant(recorded),
          fc.nat(recorded.entries.length - 1),
          fc.constantFrom(...Object.values(badEntries).slice(0, 2)),
        ),
      );
    await fc.assert(
      fc.asyncProperty(anyJournal, async ([{ base, entries }, position, makeBad]) => {
        const stack = await createStack(app);
        if (base) await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: base }));
        const update = await startUpdate(app, stack, { journal: true });
        const sorted = [...entries].sort((a, b) => a.sequenceId - b.sequenceId);
        const texts = sorted.map(({ sequenceId, text }, at) =>
          at === position ? JSON.stringify(makeBad(sequenceId)) : text.toString(),
        );
        const body = `{"entries":[${texts.join(',')}]}`;
        await ok(app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body }));
        await ok(cancel(app, stack, update));
        await app.context.compactor.compact(update.id);
        const { json } = await exportState(app, stack, update.version);
        const expected = replayJournal(base, sorted.slice(0, position), manifest).document;
        if (position === 0 && base === null) return expect(json.deployment.resources).toBeNull();
        expect(comparable(json)).toEqual(comparable(JSON.parse((position === 0 ? base : expected)?.toString() ?? '')));
      }),
      { numRuns: 25 },
    );
  });
});

describe('a stack whose journal could not be replayed', () => {
  test('reports it in exports, in its own record, in the metrics and on another replica', async () => {
    const { stack, update } = await createFaulty();
    const sentence =
      `The state of version 1 (update ${update.id}) is incomplete: Journal entry 5: "removeOld" is 99, but the base has 0 resources. ` +
      'The first 4 of 7 journal entries are in it, 3 are not.';
    await using other = await createTestApp({ database: app.database, dataDir: app.dataDir });
    for (const replica of [app, other]) {
      for (const version of [undefined, 1])
        expect((await exportState(replica, stack, version)).headers['x-pulumi-warning']).toBe(sentence);
      const shown = await ok(replica.call('GET', stack.path, { auth: stack.auth }));
      expect([shown.json.journalError, shown.headers['x-pulumi-warning']]).toEqual([sentence, sentence]);
      const contract = await ok(replica.call('GET', stack.path, { auth: stack.auth, accept: contractAccept }));
      expect(contract.json.journalError).toBe(sentence);
      expect(await replica.context.metrics.registry.metrics()).toMatch(
        /holdfast_stacks_with_journal_errors\{reason="invalid-entry"\} [1-9]/,
      );
    }
    const sound = await createStack(app);
    const shown = await ok(app.call('GET', sound.path, { auth: sound.auth }));
    expect([shown.json.journalError, shown.headers['x-pulumi-warning']]).toEqual([undefined, undefined]);
  });

  test('accepts no changes and says what an operator can do; previews and a forced delete still work', async () => {
    const { stack } = await createFaulty();
    const { auth } = stack;
    const refusals = {
      create: await create(stack),
      import: await app.call('POST', `${stack.path}/import`, { auth, body: deployment(1) }),
      rename: await app.call('POST', `${stack.path}/rename`, { auth, body: { newName: 'other' } }),
      delete: await app.call('DELETE', `${stack.path}?force=false`, { auth }),
    };
    for (const [name, { status, json }] of Object.entries(refusals))
      expect([name, status, json.message]).toEqual([
        name,
        409,
        expect.stringContaining(`holdfast admin recompact ${path(stack)}`),
      ]);
    expect(await exportedNames(app, stack)).toEqual(['one', 'two']);
    await startUpdate(app, stack, { kind: 'preview' });
    await ok(app.call('DELETE', `${stack.path}?force=true`, { auth }));
  });

  test('starts no update that was created before the fault was found, and is not locked by it', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, [...creation(1, 'one', stack), outside(3)]));
    // As after a crash between the cancel and the compaction.
    await query(
      app,
      `with ended as (update updates set status = 'cancelled', ended_at = now() where id = $1 returning stack_id)
       update stacks set active_update_id = null, stack_version = 1 from ended where id = ended.stack_id`,
      [update.id],
    );
    const { json } = await ok(create(stack));
    const start = await app.call('POST', `${stack.path}/update/${json.updateID}`, { auth: stack.auth, body: {} });
    expect([start.status, start.json.message]).toEqual([409, expect.stringContaining('holdfast admin accept')]);
    expect(await getStack(app, stack)).toMatchObject({ activeUpdate: '' });
  });

  test('keeps its journal, however often it is compacted', async () => {
    const { update } = await createFaulty();
    await query(app, `update journals set compacted_at = compacted_at - interval '1 year' where update_id = $1`, [
      update.id,
    ]);
    for (let time = 1; time <= 2; time++) await expireLeases(app.context);
    await app.context.compactor.compact(update.id);
    expect(await query(app, 'select 1 from journal_entries where update_id = $1', [update.id])).toHaveLength(7);
  });
});

test('a batch after a bad entry that is due for a snapshot is accepted, and no snapshot is created', async () => {
  await using other = await createTestApp({ settings: { HOLDFAST_DIRECT_BYTES: '1' } });
  const stack = await createStack(other);
  const update = await startUpdate(other, stack, { journal: true });
  await ok(append(other, update, [outside(1)]));
  const begins = Array.from({ length: 5_000 }, (_, at) => beginning(2 + at, 2 + at));
  await ok(append(other, update, begins));
  expect(await query(other, 'select 1 from journal_snapshots')).toEqual([]);
});

describe('entries of a kind unknown to this release', () => {
  const unknown = (sequenceId: number): object => ({ ...beginning(sequenceId, 1), kind: 77 });

  test.each(['here', 'in the thread'])('are skipped with a warning and kept; replayed %s', async (where) => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack, { journal: true });
    const many = where === 'here' ? 1 : 400;
    const rest = Array.from({ length: many }, (_, at) => creation(5 + 2 * at, `r${at}`, stack)).flat();
    await ok(append(app, update, [...creation(1, 'one', stack), unknown(3), unknown(4), ...rest]));
    const during = await exportState(app, stack);
    await ok(complete(app, update));
    await until(async () => (await compactionError(update))?.['read_back'] === true, 'read back');
    const expected = /may be incomplete: this release does not know the kind of 2 journal entries .*entry 3, kind 77/;
    for (const { headers } of [during, await exportState(app, stack), await exportState(app, stack, 1)])
      expect(headers['x-pulumi-warning']).toMatch(expected);
    expect(await exportedNames(app, stack)).toHaveLength(1 + many);
    expect(await app.context.metrics.registry.metrics()).toMatch(
      /holdfast_stacks_with_journal_errors\{reason="unknown-kind"\} [1-9]/,
    );
    // The stack still works, and the journal is kept.
    const next = await startUpdate(app, stack, { journal: true });
    await ok(complete(app, next));
    await query(app, `update journals set compacted_at = compacted_at - interval '1 year' where update_id = $1`, [
      update.id,
    ]);
    await expireLeases(app.context);
    expect(await query(app, 'select 1 from journal_entries where update_id = $1', [update.id])).toHaveLength(
      4 + 2 * many,
    );
  });
});
