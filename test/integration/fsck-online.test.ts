import { expect, test } from '@jest/globals';
import pg from 'pg';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { createRowRepairRepository } from '../../src/cli/fsck/row-repair-repository.ts';
import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { indexDue } from '../../src/workers/search/index-states.ts';
import { compactEndedUpdates, deleteKeptJournals } from '../../src/workers/state/compact-journals.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { stackId } from '../support/state-index.ts';
import { masterKeys, testApp, testReplica } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

const app = testApp({
  settings: { HOLDFAST_INLINE_BYTES: '350', HOLDFAST_DELETED_STACK_DAYS: '7' },
});
const replica = testReplica(app);
const ring = keyRingOf(masterKeys);

/** One after another: what clients do with a stack. */
async function useStack(round: number): Promise<void> {
  const stack = await createStack(app);
  const { auth, path } = stack;
  const large = await startUpdate(app, stack);
  for (const count of [2, 40, 30]) await ok(saveState(app, large, count, `${round}-${count}-`));
  await ok(complete(app, large));
  const journal = await startUpdate(app, stack, { journal: true });
  await ok(append(app, journal, creation(1, `r${round}`, stack)));
  await ok(complete(app, journal));
  await ok(app.call('PATCH', `${path}/tags`, { auth, body: { round: String(round) } }));
  await ok(app.call('POST', `${path}/import`, { auth, body: deployment(20, `${round}`) }));
  await ok(app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: 'YQ==' } }));
  const renamed: TestStack = { ...stack, path: path.replace(/dev$/, 'renamed') };
  await ok(app.call('POST', `${path}/rename`, { auth, body: { newName: 'renamed' } }));
  await startUpdate(app, renamed);
  const other = await createStack(app);
  await ok(app.call('DELETE', other.path, { auth: other.auth }));
}

test('beside servers and workers, checks find nothing and repairs change nothing', async () => {
  let isBusy = true;
  const backlog = new BytePace(1e9);
  const work = async (): Promise<void> => {
    while (isBusy) {
      await indexDue(replica.context, { delaySeconds: 0, backlog });
      await compactEndedUpdates(replica.context);
      await deleteKeptJournals(replica.context);
      await sweepBlobs(replica.context);
    }
  };
  const found: unknown[] = [];
  let [runs, rounds] = [0, 0];
  const write = async (): Promise<void> => {
    while (rounds < 18 || runs < 3) await useStack(rounds++);
  };
  const check = async (): Promise<void> => {
    for (; isBusy; runs++)
      found.push(...(await fsck(replica.context, { fixes: runs % 2 === 1, sample: null, ring })).findings);
  };
  const others = [work(), check()];
  try {
    await Promise.all([write(), write(), write()]);
  } finally {
    isBusy = false;
    await Promise.all(others);
  }
  expect(found).toEqual([]);
  await chainAll(app);
  expect((await fsck(app.context, { fixes: false, sample: null, ring })).findings).toEqual([]);
  expect(await query(app, 'select 1 from stacks')).toHaveLength(2 * rounds);
});

test('a repair does not hide drift that is found meanwhile', async () => {
  const stack = await createStack(app);
  const update = await startUpdate(app, stack);
  await ok(complete(app, update));
  const id = await stackId(app, stack);
  await query(
    app,
    `insert into drift_runs (update_id, stack_id, organization_id, number, state)
     select id, stack_id, organization_id, number + 1, 'waiting' from updates where stack_id = $1`,
    [id],
  );
  const worker = new pg.Client({ connectionString: app.database.ownerUrl });
  await worker.connect();
  try {
    await worker.query('begin');
    await worker.query(`update drift_runs set state = 'done', is_detected = true where stack_id = $1`, [id]);
    const repair = app.context.db.inTransaction((tx) => createRowRepairRepository(tx).noteChange(id));
    await until(async () => {
      const waiting = await query(
        app,
        `select 1 from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock' and query like '%rowRepairs.%'`,
      );
      return waiting.length > 0;
    }, 'the repair waits');
    await worker.query('commit');
    await repair;
  } finally {
    await worker.end();
  }
  expect(await query(app, 'select is_drifted from stack_changes where stack_id = $1', [id])).toEqual([
    { is_drifted: true },
  ]);
});
