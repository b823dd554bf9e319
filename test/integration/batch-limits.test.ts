import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { creation } from '../support/journal-entries.ts';
import { exportedNames } from '../support/stack-state.ts';
import { createStack, deployment, gzipped, ok, startUpdate } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { complete } from '../support/update-calls.ts';

const maxBatchBytes = 20_000;
const tooMuch = 'x'.repeat(maxBatchBytes);

describe.each([
  ['committed directly', {}],
  ['committed by a worker', { HOLDFAST_DIRECT_BYTES: '1' }],
])('a batch or delta above the largest size, %s', (_label, settings) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ settings: { maxBatchBytes: maxBatchBytes, ...settings } });
  });
  afterAll(() => app[Symbol.asyncDispose]());

  test('of journal entries is rejected completely, so that the CLI halves it', async () => {
    const update = await startUpdate(app, await createStack(app), { journal: true });
    const entry = (sequenceID: number, note: string) => ({ version: 1, kind: 0, sequenceID, operationID: 1, note });
    const send = (...entries: object[]) =>
      app.call('PATCH', `${update.path}/journalentries`, {
        auth: update.lease,
        ...gzipped(JSON.stringify({ entries })),
      });
    const half = tooMuch.slice(0, maxBatchBytes / 2);
    expect((await send(entry(1, half), entry(2, half))).status).toBe(413);
    await ok(send(entry(1, half)));
    await ok(send(entry(2, half)));
  });

  test('of events is rejected', async () => {
    const update = await startUpdate(app, await createStack(app));
    const send = (note: string) =>
      app.call('POST', `${update.path}/events/batch`, {
        auth: update.lease,
        ...gzipped(JSON.stringify({ events: [{ sequence: 0, timestamp: 1, note }] })),
      });
    expect((await send(tooMuch)).status).toBe(413);
    await ok(send('short'));
  });

  test('is rejected as a delta; the full checkpoint with its sequence number is accepted, whatever its size', async () => {
    const stack = await createStack(app);
    const update = await startUpdate(app, stack);
    const send = (kind: string, body: object) =>
      app.call('PATCH', `${update.path}/checkpoint${kind}`, { auth: update.lease, ...gzipped(JSON.stringify(body)) });
    await ok(send('verbatim', { version: 3, untypedDeployment: deployment(1), sequenceNumber: 1 }));
    const edit = { Span: { start: { offset: 0 }, end: { offset: 0 } }, NewText: tooMuch };
    const delta = { version: 3, checkpointHash: '0'.repeat(64), sequenceNumber: 2, deploymentDelta: [edit] };
    expect((await send('delta', delta)).status).toBe(413);
    const whole = deployment(2, tooMuch);
    await ok(send('verbatim', { version: 3, untypedDeployment: whole, sequenceNumber: 2 }));
    const exported = await ok(app.call('GET', `${stack.path}/export`, { auth: stack.auth }));
    expect(exported.json).toEqual(whole);
  });
});

test.each([
  ['committed directly', {}],
  ['committed by a worker', { HOLDFAST_DIRECT_BYTES: '1' }],
])(
  'a batch in several gzip members, the last of which states a small size, is accepted when it is %s',
  async (_label, settings) => {
    await using app = await createTestApp({ settings });
    const stack = await createStack(app);
    const headers = { 'content-encoding': 'gzip' };
    const padded = (text: string): Buffer => {
      const long = `{${' '.repeat(9 * 1024 * 1024)}${text.slice(1)}`;
      return Buffer.concat([gzipSync(long.slice(0, -10)), gzipSync(long.slice(-10))]);
    };
    const journaled = await startUpdate(app, stack, { journal: true });
    const entries = JSON.stringify({ entries: creation(1, 'r0', stack) });
    await ok(
      app.call('PATCH', `${journaled.path}/journalentries`, { auth: journaled.lease, body: padded(entries), headers }),
    );
    const events = JSON.stringify({ events: [{ sequence: 0, timestamp: 1, note: 'short' }] });
    await ok(
      app.call('POST', `${journaled.path}/events/batch`, { auth: journaled.lease, body: padded(events), headers }),
    );
    await ok(complete(app, journaled));
    expect(await exportedNames(app, stack)).toEqual(['r0']);
  },
);
