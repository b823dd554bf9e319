import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { createJournalSnapshotRepository } from '../../src/shared/state/journal/journal-snapshot-repository.ts';
import { compactEndedUpdates } from '../../src/workers/state/compact-journals.ts';
import { holdInserts, query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { createStack, deployment, ok, type RunningUpdate, startUpdate } from '../support/state.ts';
import { testApp, testReplica } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, cancel, complete, expire, saveState, saveVerbatim } from '../support/update-calls.ts';

// Writes of one update that overlap: none sees the row of the one that it waits for.

const app = testApp({ settings: { HOLDFAST_INLINE_BYTES: '250' } });
const other = testReplica(app);

const rounds = 8;

const sendDelta = (to: typeof app, update: RunningUpdate, text: string, sequenceNumber: number, note: string) => {
  const result = text.replace('"first"', JSON.stringify(note));
  return to.call('PATCH', `${update.path}/checkpointdelta`, {
    auth: update.lease,
    body: {
      version: 3,
      sequenceNumber,
      checkpointHash: createHash('sha256').update(result).digest('hex'),
      deploymentDelta: [{ Span: { start: { offset: 0 }, end: { offset: text.length } }, NewText: result }],
    },
  });
};

/** Checkpoints that nothing refers to, and how many blobs count as used without being it. */
async function listLeftovers(): Promise<{ checkpoints: string[]; blobs: number }> {
  const checkpoints = await query<{ id: string }>(
    app,
    `select c.id from checkpoints c
     where not exists (select 1 from updates u where c.id in (u.checkpoint_id, u.base_checkpoint_id))
       and not exists (select 1 from stacks s where c.id in (s.checkpoint_id, s.deleted_checkpoint_id))`,
  );
  const [row] = await query<{ count: number }>(
    app,
    `select count(*)::int as count from blobs b where b.unreferenced_since is null
       and not exists (select 1 from updates u join checkpoints c on c.id in (u.checkpoint_id, u.base_checkpoint_id) where c.blob_key = b.key)`,
  );
  return { checkpoints: checkpoints.map(({ id }) => id), blobs: row?.count ?? 0 };
}

const nothing = { checkpoints: [], blobs: 0 };

test('two checkpoints of an update that are written at once leave one', async () => {
  for (let round = 0; round < rounds; round++) {
    const update = await startUpdate(app, await createStack(app));
    await using gate = await holdInserts(app, 'checkpoints');
    const writes = Promise.all([
      saveVerbatim(app, update, 1, deployment(5)),
      saveVerbatim(other, update, 2, deployment(6)),
    ]);
    await gate.reached(2);
    await gate.release();
    await writes;
  }
  expect(await listLeftovers()).toEqual(nothing);
});

test('so do writes of all kinds at once, whatever ends the update meanwhile', async () => {
  for (let round = 0; round < rounds; round++) {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const first = deployment(5, 'x');
    const text = JSON.stringify({ ...first, note: 'first' });
    await ok(saveVerbatim(app, update, 1, JSON.parse(text)));
    const ends = [
      () => complete(app, update),
      () => cancel(app, stack, update),
      () => expire(app, update.id),
      async () => {},
    ];
    await using gate = await holdInserts(app, 'checkpoints');
    const writes = Promise.all([
      saveState(app, update, 5, 'a'),
      saveState(other, update, 6, 'b'),
      saveVerbatim(app, update, 2, deployment(7)),
      sendDelta(other, update, text, 3, 'c'),
      saveVerbatim(other, update, 4, deployment(8)),
    ]);
    await gate.reached(2);
    const end = ends[round % ends.length]?.();
    await gate.release();
    await writes;
    await end;
  }
  expect(await listLeftovers()).toEqual(nothing);
});

test('a snapshot of a journal that is stored after the end of its compaction is not kept', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'a', stack)));
  const snapshots = createJournalSnapshotRepository(app.context.db);
  const document = {
    sha256: Buffer.alloc(32),
    sizeBytes: 1,
    storedBytes: 1,
    codec: 'none',
    inlineBytes: Buffer.alloc(1),
    blobKey: null,
  } as const;
  const stored = () => query(app, 'select 1 from journal_snapshots where update_id = $1', [update.id]);
  await snapshots.upsert(update.id, 1, document);
  expect(await stored()).toHaveLength(1);
  await query(app, 'delete from journal_snapshots where update_id = $1', [update.id]);
  await ok(complete(app, update));
  await compactEndedUpdates(app.context);
  // The end of the update also has it compacted, in the background.
  const compacted = 'select 1 from journals where update_id = $1 and compacted_at is not null';
  await until(async () => (await query(app, compacted, [update.id])).length === 1, 'the journal is compacted');
  await snapshots.upsert(update.id, 2, document);
  expect(await stored()).toEqual([]);
});
