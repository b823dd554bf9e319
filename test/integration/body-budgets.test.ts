import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from '@jest/globals';
import { holdInserts } from '../support/database.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import type { TestSettings } from '../support/test-settings.ts';
import { until } from '../support/until.ts';
import { head, type WireAnswer, WireServer } from '../support/wire.ts';

const mib = 1024 * 1024;
let app: TestApp;
afterEach(() => app?.[Symbol.asyncDispose]());

async function serve(settings: TestSettings): Promise<WireServer> {
  app = await createTestApp({ settings });
  return WireServer.listen(app);
}

/** An import of `length` bytes of which `sent` have been sent; the rest follows on request. */
async function beginImport(server: WireServer, stack: TestStack, body: Buffer, sent: number) {
  const connection = server.connect();
  const headers = { Authorization: stack.auth, Accept: 'application/vnd.pulumi+9', 'Content-Type': 'application/json' };
  await connection.write(head('POST', `${stack.path}/import`, { headers, length: body.length }));
  await connection.write(body.subarray(0, sent));
  return { connection, finish: () => connection.write(body.subarray(sent)) };
}

/** A deployment that does not compress well. */
function incompressible(bytes: number): Buffer {
  return Buffer.from(JSON.stringify(deployment(1, randomBytes(bytes / 4).toString('hex'))));
}

test('a slow import delays neither checkpoints nor other imports, however large', async () => {
  const budget = 6 * mib;
  const server = await serve({ inFlightBytes: budget, importInFlightBytes: budget });
  const slowStack = await createStack(app);
  const document = incompressible(4 * mib);
  const slow = await beginImport(server, slowStack, document, 500_000);
  await until(() => app.context.payloads.bytesHeld() > 0, 'the import is under way');
  for (let round = 0; round < 3; round++) {
    const [stack, other] = [await createStack(app), await createStack(app)];
    const update = await startUpdate(app, stack);
    const answers = await Promise.all([
      app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: document }),
      app.call('POST', `${other.path}/import`, { auth: other.auth, body: document }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([204, 200]);
  }
  await slow.finish();
  expect(await slow.connection.answer()).toMatchObject({ status: 200 });
  slow.connection.destroy();
  await until(() => app.context.payloads.bytesHeld() === 0, 'the whole budget is free');
});

test('imports use only their own share of the budget', async () => {
  const settings = { inFlightBytes: 6 * mib, importInFlightBytes: mib };
  const server = await serve(settings);
  const [importing, stack] = [await createStack(app), await createStack(app)];
  const document = incompressible(4 * mib);
  const full = await beginImport(server, importing, document, document.length - 1);
  await until(() => app.context.payloads.bytesHeld() > mib, 'the budget for imports is full');
  const update = await startUpdate(app, stack);
  await ok(app.call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body: document }));
  expect(await exportedNames(app, stack)).toHaveLength(1);
  await full.finish();
  expect(await full.connection.answer()).toMatchObject({ status: 200 });
  full.connection.destroy();
});

test('a body that trickles is cut off with a reason and releases its budget', async () => {
  const server = await serve({ minBodyBytesPerSecond: mib });
  const stack = await createStack(app);
  const { connection } = await beginImport(server, stack, incompressible(4 * mib), 300_000);
  const trickle = setInterval(() => void connection.write(' '), 100);
  let answer: WireAnswer | null;
  try {
    answer = await connection.answer(50_000);
  } finally {
    clearInterval(trickle);
    connection.destroy();
  }
  expect(answer).toMatchObject({ status: 503, json: { code: 503, message: expect.stringContaining('more slowly') } });
  expect(answer?.json.message).toContain('more slowly than the 1048576 bytes per second');
  await until(() => app.context.payloads.bytesHeld() === 0, 'the budget is free');
});

test('fifty small batches that inflate to 8 MB each stay within the budget while leases are renewed', async () => {
  const budget = 32 * mib;
  await serve({ bufferedBodyBytes: budget });
  const stacks = await Promise.all(Array.from({ length: 5 }, () => createStack(app)));
  const updates = await Promise.all(stacks.map((stack) => startUpdate(app, stack, { journal: true })));
  const entry = { version: 1, kind: 0, sequenceID: 1, operationID: 1, note: 'x'.repeat(8_000_000) };
  const batch = gzipped({ entries: [entry] });
  expect(batch.body.length).toBeLessThan(15_000);
  const { bufferedBodyBytes } = app.context;
  // The first ones keep their part of the budget until the leases are renewed.
  await using gate = await holdInserts(app, 'journal_entries');
  const batches = Promise.all(
    Array.from({ length: 50 }, (_, index) => {
      const update = updates[index % updates.length] as (typeof updates)[number];
      return app.call('PATCH', `${update.path}/journalentries`, { auth: update.lease, ...batch });
    }),
  );
  await until(() => bufferedBodyBytes.waiting > 0, 'batches wait for their turn');
  for (const update of updates) {
    const renewal = gzipSync(JSON.stringify({ token: update.lease.split(' ')[1], duration: 300 }));
    const headers = { 'content-encoding': 'gzip' };
    await ok(app.call('POST', `${update.path}/renew_lease`, { auth: update.lease, body: renewal, headers }));
  }
  expect(bufferedBodyBytes.waiting).toBeGreaterThan(0);
  await gate.release();
  const statuses = (await batches).map(({ status, headers }) => `${status} ${headers['retry-after'] ?? ''}`.trim());
  expect(new Set(statuses)).toEqual(new Set(statuses.includes('503 1') ? ['204', '503 1'] : ['204']));
  expect(statuses).toContain('204');
  expect(bufferedBodyBytes.used).toBe(0);
  expect(bufferedBodyBytes.peak).toBeLessThanOrEqual(budget);
  expect(bufferedBodyBytes.peak).toBeGreaterThan(8_000_000);
});
