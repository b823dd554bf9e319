import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { DelayedPuts } from '../support/delayed-puts.ts';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, ok, type RunningUpdate, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { append, complete, saveState } from '../support/update-calls.ts';

// One job of each queue runs at a time. Documents are put into the blob store, where single ones can be held.

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-bases-'));
const puts = new DelayedPuts();
let app: TestApp;
beforeAll(async () => {
  const blobs = puts.over(await openBlobStore({ kind: 'files', directory }));
  const limits = { largeBytes: 50_000, largeJobConcurrency: 1, jobWaitSeconds: 30 };
  const settings = { HOLDFAST_INLINE_BYTES: '1', HOLDFAST_JOB_CONCURRENCY: '1', ...limits };
  app = await createTestApp({ settings, overrides: { blobs } });
});
afterEach(() => puts.reset());
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

async function journaledUpdate(stack: TestStack): Promise<RunningUpdate> {
  const update = await startUpdate(app, stack, { journal: true });
  await ok(append(app, update, creation(1, 'added', stack)));
  return update;
}

test('small writes do not wait for the compaction of a journal with a large base', async () => {
  const large = await createStack(app);
  const first = await startUpdate(app, large);
  await ok(saveState(app, first, 2, randomBytes(100_000).toString('hex')));
  await ok(complete(app, first));
  const update = await journaledUpdate(large);
  const small = await createStack(app);
  const other = await journaledUpdate(small);
  puts.hold(1);
  const compacted = complete(app, update);
  await until(() => puts.held.length === 1, 'a worker compacts the journal');
  await ok(complete(app, other));
  expect(await exportedNames(app, small)).toEqual(['added']);
  puts.reset();
  await ok(compacted);
  expect(await exportedNames(app, large)).toContain('added');
});
