import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { expireLeases } from '../support/expire-leases.ts';
import { beginning, creation, removal } from '../support/journal-entries.ts';
import { exportedNames, exportState } from '../support/stack-state.ts';
import {
  createStack,
  deployment,
  gzipped,
  ok,
  type RunningUpdate,
  startUpdate,
  type TestStack,
} from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, saveState, saveVerbatim } from '../support/update-calls.ts';

let app: TestApp;
beforeAll(async () => {
  // Journals are deleted as soon as they are compacted.
  app = await createTestApp({ settings: { journalGraceSeconds: 0 } });
});
afterAll(() => app[Symbol.asyncDispose]());

const entryCount = async (update: RunningUpdate): Promise<number> =>
  (await query(app, 'select 1 from journal_entries where update_id = $1', [update.id])).length;

async function started(): Promise<{ stack: TestStack; update: RunningUpdate }> {
  const stack = await createStack(app);
  return { stack, update: await startUpdate(app, stack, { journal: true }) };
}

describe('negotiation', () => {
  const start = async (on: TestApp, body: object) => {
    const stack = await createStack(on);
    const { json } = await ok(on.call('POST', `${stack.path}/update`, { auth: stack.auth, body: {} }));
    const answer = await ok(on.call('POST', `${stack.path}/update/${json.updateID}`, { auth: stack.auth, body }));
    return { stack, id: json.updateID as string, ...answer.json };
  };

  test('the journal is on, with the newest version that both sides know', async () => {
    for (const [journalVersion, given] of [
      [1, 1],
      [2, 2],
      [3, 2],
    ])
      expect((await start(app, { journalVersion })).journalVersion).toBe(given);
    for (const body of [{}, { journalVersion: 0 }, { journalVersion: null }])
      expect(await start(app, body)).not.toHaveProperty('journalVersion');
  });

  test.each(['delta', 'full'])('it is off where the setting says %s', async (mode) => {
    await using other = await createTestApp({ settings: { HOLDFAST_CHECKPOINT_MODE: mode } });
    expect(await start(other, { journalVersion: 1 })).not.toHaveProperty('journalVersion');
    const { json } = await ok(other.call('GET', '/api/capabilities'));
    const names = json.capabilities.map((one: { capability: string }) => one.capability);
    expect(names.includes('delta-checkpoint-uploads-v2')).toBe(mode === 'delta');
  });

  test('an update keeps the mode it has started with', async () => {
    const { update } = await started();
    expect((await saveState(app, update, 1)).status).toBe(409);
    expect((await saveVerbatim(app, update, 1)).status).toBe(409);
    const other = await startUpdate(app, await createStack(app));
    expect((await append(app, other, [])).status).toBe(409);
  });
});

describe('appending', () => {
  test('repeated entries change nothing; the first entry of a sequenceID counts', async () => {
    const { stack, update } = await started();
    const first = creation(1, 'one', stack);
    for (let time = 1; time <= 3; time++) expect((await append(app, update, first)).status).toBe(204);
    await ok(append(app, update, [...creation(1, 'imposter', stack), ...creation(3, 'two', stack)]));
    expect(await entryCount(update)).toBe(4);
    expect(await exportedNames(app, stack)).toEqual(['one', 'two']);
  });

  test('batches may come out of order', async () => {
    const { stack, update } = await started();
    const [a, b, c] = [creation(1, 'a', stack), creation(3, 'b', stack), creation(5, 'c', stack)];
    for (const batch of [c, [b[1]], a, [b[0]]]) await ok(append(app, update, batch));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['a', 'b', 'c']);
  });

  test('large gzipped batches go through a job', async () => {
    const { stack, update } = await started();
    const entries = Array.from({ length: 4_000 }, (_, index) => creation(1 + 2 * index, `n${index}`, stack)).flat();
    const incompressible = entries.map((entry) => ({ ...entry, unheardOf: Math.random() }));
    const { body, headers } = gzipped({ entries: incompressible });
    expect(body.length).toBeGreaterThan(app.context.config.limits.directBytes / 2);
    await ok(app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body, headers }));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toHaveLength(4_000);
  });

  test.each([
    ['no JSON', 'x'],
    ['no entries', '{}'],
    ['entries that are no array', '{"entries":{}}'],
    ['an entry that is not an object', '{"entries":[1]}'],
    ['an entry without sequenceID', '{"entries":[{"version":1,"kind":0}]}'],
    ['an entry without kind', '{"entries":[{"version":1,"sequenceID":1,"operationID":1}]}'],
    ['a kind of null', '{"entries":[{"version":1,"kind":null,"sequenceID":1}]}'],
    ['an entry of a newer version', '{"entries":[{"version":3,"kind":0,"sequenceID":1,"operationID":1}]}'],
    ['a sequenceID of 0', '{"entries":[{"kind":0,"sequenceID":0}]}'],
    [
      'one bad entry after a good one',
      '{"entries":[{"sequenceID":1,"kind":0,"operationID":1},{"kind":0,"sequenceID":1.5}]}',
    ],
  ])('a batch with %s returns 400 and adds nothing', async (_name, body) => {
    const { update } = await started();
    const response = await app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, body });
    expect([response.status, response.json.code]).toEqual([400, 400]);
    expect(await entryCount(update)).toBe(0);
  });

  test.each(['cancelled', 'expired'])('returns 403 once the lease is %s; written entries are kept', async (end) => {
    const { stack, update } = await started();
    await ok(append(app, update, creation(1, 'kept', stack)));
    if (end === 'cancelled') await ok(cancel(app, stack, update));
    else await expire(app, update.id);
    const late = await append(app, update, creation(3, 'late', stack));
    expect([late.status, late.json.code]).toEqual([403, 403]);
    expect(await exportedNames(app, stack)).toEqual(['kept']);
  });
});

describe('export', () => {
  test('shows the entries during the update, including pending operations', async () => {
    const { stack, update } = await started();
    const [begin, success] = creation(1, 'one', stack);
    await ok(append(app, update, [begin]));
    const during = await exportState(app, stack);
    expect(during.json.deployment.resources ?? []).toEqual([]);
    expect(during.json.deployment.pending_operations).toMatchObject([{ type: 'creating' }]);
    await ok(append(app, update, [success]));
    expect(await exportedNames(app, stack)).toEqual(['one']);
    expect(await exportedNames(app, stack, 1)).toEqual(['one']);
  });
});

describe('compaction', () => {
  const ends: Record<string, (stack: TestStack, update: RunningUpdate) => Promise<void>> = {
    complete: async (_stack, update) => void (await ok(complete(app, update))),
    'complete as failed': async (_stack, update) => void (await ok(complete(app, update, 'failed'))),
    cancel: async (stack, update) => void (await ok(cancel(app, stack, update))),
    expiry: async (_stack, update) => {
      await expire(app, update.id);
      await expireLeases(app.context);
    },
  };

  test.each(Object.keys(ends))('happens at %s and leaves no entries behind', async (end) => {
    const { stack, update } = await started();
    await ok(append(app, update, creation(1, 'one', stack)));
    await ends[end]?.(stack, update);
    await until(async () => (await entryCount(update)) === 0, 'journal entries deleted');
    const [row] = await query(
      app,
      `select c.resource_count, s.checkpoint_id = c.id as is_head,
         exists (select 1 from journals where update_id = u.id) as has_journal
       from updates u join checkpoints c on c.id = u.checkpoint_id join stacks s on s.id = u.stack_id where u.id = $1`,
      [update.id],
    );
    expect(row).toEqual({ resource_count: 1, has_journal: false, is_head: true });
    expect(await exportedNames(app, stack, 1)).toEqual(['one']);
  });

  test('the next update starts from the compacted state, even right after a cancel', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(3)) }));
    const first = await startUpdate(app, stack, { journal: true });
    await ok(append(app, first, [beginning(1, 1), removal(2, 1, 1), ...creation(3, 'new', stack)]));
    await ok(cancel(app, stack, first));
    const second = await startUpdate(app, stack, { journal: true });
    // Positions now refer to: new, r0, r2.
    await ok(append(app, second, [beginning(1, 1), removal(2, 1, 1)]));
    await ok(complete(app, second));
    expect(await exportedNames(app, stack)).toEqual(['new', 'r2']);
    expect(await exportedNames(app, stack, 2)).toEqual(['new', 'r0', 'r2']);
    expect(await exportedNames(app, stack, 1)).toEqual(['r0', 'r1', 'r2']);
  });

  test('a migration of the state moves what later entries refer to', async () => {
    const stack = await createStack(app);
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, ...gzipped(deployment(4)) }));
    const update = await startUpdate(app, stack, { journal: true });
    const [, { state }] = creation(3, 'folded', stack) as [object, { state: object }];
    const migration = {
      ...{ version: 2, kind: 10, sequenceID: 3, operationID: 0, removeOld: null, removeNew: null },
      layout: [{ baseIndex: 3 }, { stateIndex: 0 }, { baseIndex: 0 }],
      states: [{ ...state, id: 'x' }],
    };
    await ok(append(app, update, [beginning(1, 1), removal(2, 1, 0), migration]));
    expect(await exportedNames(app, stack)).toEqual(['r3', 'folded']);
    await ok(append(app, update, [beginning(4, 4), removal(5, 4, 0), ...creation(6, 'new', stack)]));
    await ok(complete(app, update));
    expect(await exportedNames(app, stack)).toEqual(['new', 'folded']);
  });

  test('an update that sends no entries leaves the state unchanged, byte for byte', async () => {
    const stack = await createStack(app);
    const document = '{"version":3, "deployment":{"resources":null,"n":1.0}}';
    await ok(app.call('POST', `${stack.path}/import`, { auth: stack.auth, body: document }));
    const update = await startUpdate(app, stack, { journal: true });
    await ok(append(app, update, []));
    await ok(complete(app, update));
    expect((await exportState(app, stack)).text).toBe(document);
  });
});
