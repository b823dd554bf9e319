import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { query } from '../support/database.ts';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { cancel, saveState } from '../support/update-calls.ts';
import { head, WireServer } from '../support/wire.ts';

// Full checkpoints have no sequence number. There are two replicas on one database; the first one is held at a point
// where a process could freeze.

const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-full-order-'));
let gated: Awaited<ReturnType<typeof openGatedBlobs>>;
let held: TestApp;
let other: TestApp;
beforeAll(async () => {
  gated = await openGatedBlobs(directory);
  const settings = { HOLDFAST_INLINE_BYTES: '1' };
  held = await createTestApp({ settings, overrides: { blobs: gated.blobs } });
  const { database, dataDir } = held;
  const { blobs } = await openGatedBlobs(directory);
  other = await createTestApp({ settings, database, dataDir, overrides: { blobs } });
});
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await held[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

test('a write delayed between arrival and commit does not overwrite a newer one', async () => {
  const stack = await createStack(other);
  const update = await startUpdate(other, stack);
  gated.shut();
  const old = saveState(held, update, 1);
  try {
    await until(() => gated.waiting() === 1, 'the older one is held');
    await ok(saveState(other, update, 1));
    await ok(saveState(other, update, 2));
  } finally {
    gated.open();
  }
  expect((await old).status).toBe(204);
  expect(await exportedNames(other, stack)).toHaveLength(2);
  // Later writes are ordered after all of them.
  await ok(saveState(held, update, 3));
  expect(await exportedNames(other, stack)).toHaveLength(3);
  await ok(cancel(other, stack, update));
});

describe('a write whose client disconnected before it got its arrival sequence', () => {
  let server: WireServer;
  beforeAll(async () => {
    server = await WireServer.listen(held);
  });

  // Sent in one socket read, sent behind what the parser holds back, and sent as a job.
  test.each([100, 200_000, 300_000])('changes nothing (%p bytes)', async (bytes) => {
    const stack = await createStack(other);
    const update = await startUpdate(other, stack);
    await ok(saveState(other, update, 1));
    const blocker = new pg.Client({ connectionString: other.database.ownerUrl });
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('select 1 from updates where id = $1 for update', [update.id]);
    try {
      const body = JSON.stringify({ ...deployment(7), note: 'x'.repeat(bytes) });
      const connection = server.connect();
      const headers = {
        Authorization: update.lease,
        Accept: 'application/vnd.pulumi+9',
        'Content-Type': 'application/json',
      };
      await connection.write(head('PATCH', `${update.path}/checkpoint`, { headers, length: body.length }));
      await connection.write(body);
      await until(async () => (await waiters()) === 1, 'the call waits for its place');
      connection.destroy();
    } finally {
      await blocker.query('commit');
      await blocker.end();
    }
    await until(async () => (await openConnections()) === 0, 'the call is over');
    // Enough time for a commit to happen.
    await sleep(500);
    expect(await exportedNames(other, stack)).toHaveLength(1);
  });

  const waiters = async (): Promise<number> =>
    (
      await query(
        other,
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
    ).length;

  const openConnections = (): Promise<number> =>
    new Promise((resolve, reject) =>
      held.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
});
