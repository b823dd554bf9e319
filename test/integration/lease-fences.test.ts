import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openGatedBlobs } from '../support/gated-blobs.ts';
import { calls, expectKept, join, leaveRunning, revoke } from '../support/lease-owners.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';
import { saveState } from '../support/update-calls.ts';

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app[Symbol.asyncDispose]());

test.each(Object.keys(calls))('a %s may be the first call to be rejected after a revocation', async (call) => {
  for (const journal of [true, false]) {
    const member = await join(app);
    const update = await leaveRunning(app, member, journal);
    await revoke(app, member);
    const refused = await calls[call]?.(app, update, member.stack);
    expect([refused?.status, refused?.json.message]).toEqual([403, expect.stringMatching(/was revoked/)]);
    await expectKept(app, member, update);
  }
});

test('a pending write is rejected by its fence when the token is revoked', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'holdfast-gated-'));
  const gated = await openGatedBlobs(directory);
  const shared = app;
  app = await createTestApp({ settings: { HOLDFAST_INLINE_BYTES: '1' }, overrides: { blobs: gated.blobs } });
  try {
    const member = await join(app);
    const update = await leaveRunning(app, member, false);
    gated.shut();
    const late = saveState(app, update, 5, 'x'.repeat(1000));
    await until(() => gated.waiting() > 0, 'the document is uploaded');
    await revoke(app, member);
    gated.open();
    const refused = await late;
    expect([refused.status, refused.json.message]).toEqual([403, expect.stringMatching(/was revoked/)]);
    await expectKept(app, member, update);
  } finally {
    gated.open();
    await app[Symbol.asyncDispose]();
    app = shared;
    rmSync(directory, { recursive: true, force: true });
  }
});
