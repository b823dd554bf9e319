import { expect, test } from '@jest/globals';
import { fsck } from '../../src/cli/fsck/fsck.ts';
import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { indexDue } from '../../src/workers/search/index-states.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { compactEndedUpdates, deleteKeptJournals } from '../../src/workers/updates/expire-leases.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { creation } from '../support/journal-entries.ts';
import { keyRingOf } from '../support/key-ring.ts';
import { createStack, deployment, ok, startUpdate, type TestStack } from '../support/state.ts';
import { masterKeys, testApp, testReplica } from '../support/test-app.ts';
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
