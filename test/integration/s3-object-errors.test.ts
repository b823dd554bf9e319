import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { beginReconcile, reconcile } from '../../src/shared/state/blobs/reconcile-blobs.ts';
import { encodeVersions } from '../../src/workers/state/encode-versions.ts';
import { sweepBlobs } from '../../src/workers/state/sweep-blobs.ts';
import { sendError } from '../contracts/fake-s3.ts';
import { query } from '../support/database.ts';
import {
  createEncoder,
  exportVersions,
  importVersion,
  makeDue,
  stateOf,
  versionsOf,
} from '../support/encode-versions.ts';
import { type Fault, type MemoryS3, startMemoryS3 } from '../support/memory-s3.ts';
import { createStack, ok, startUpdate, type TestStack } from '../support/state.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';
import { complete, saveVerbatim } from '../support/update-calls.ts';

const secret = 'secret-access-key-of-the-test';
let s3: MemoryS3;
let app: TestApp;
let log: string[] = [];

beforeAll(async () => {
  s3 = await startMemoryS3(secret);
  app = await createTestApp({
    settings: {
      encodeBytesPerSecond: 1_000_000_000_000,
      HOLDFAST_INLINE_BYTES: '250',
      blobGraceSeconds: 1,
      HOLDFAST_BLOB_RETENTION_SECONDS: '1',
    },
    overrides: { blobs: s3.store },
    log: { write: (line) => void log.push(line) },
  });
});
afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await s3.close();
});
afterEach(() => {
  s3.fault = () => undefined;
  const text = log.join('');
  log = [];
  expect(text).not.toContain(secret);
});

const faults: readonly [string, Fault][] = [
  ['403 AccessDenied', (response) => sendError(response, 403, 'AccessDenied')],
  ['503 SlowDown', (response) => sendError(response, 503, 'SlowDown')],
  ['404 NoSuchKey', (response) => sendError(response, 404, 'NoSuchKey')],
  ['404 of a proxy', (response) => void response.writeHead(404).end('<html>no such page</html>')],
  ['500 with half an error', (response) => void response.writeHead(500).end('<?xml version="1.0"?><Error><Co')],
  [
    'a body that ends early',
    (response, _operation, stored) => {
      response.writeHead(200, { 'content-length': 100_000, 'last-modified': new Date().toUTCString() });
      response.write(stored?.subarray(0, 100) ?? 'x');
      setImmediate(() => response.destroy());
    },
  ],
];

/** Those that say nothing about the object. */
const passing = faults.filter(([label]) => label !== '404 NoSuchKey');

async function stackWithState(versions = 1): Promise<{ stack: TestStack; keys: Set<string>; texts: string[] }> {
  const before = new Set(s3.objects.keys());
  const stack = await createStack(app);
  // No two stacks have the same text: a lost object is replaced by a copy of another.
  const texts = Array.from({ length: versions }, (_, at) =>
    stateOf(60, { 30: stack.organization, [at]: `v${at}`, [at + 40]: `w${at}` }),
  );
  for (const text of texts) await importVersion(app, stack, text);
  return { stack, texts, keys: new Set([...s3.objects.keys()].filter((key) => !before.has(key))) };
}

const exportOf = ({ path, auth }: TestStack) => app.call('GET', `${path}/export`, { auth });

test.each(passing)(
  'a state whose object answers %s is unavailable, others are read, and it is whole again',
  async (_label, fault) => {
    const bad = await stackWithState();
    const good = await stackWithState();
    expect(bad.keys.size).toBe(1);
    s3.fault = (_operation, key) => (bad.keys.has(key) ? fault : undefined);
    const answer = await exportOf(bad.stack);
    expect({ status: answer.status, retry: answer.headers['retry-after'] }).toEqual({
      status: 503,
      retry: expect.anything(),
    });
    for (const hidden of [secret, 'told so', ...bad.keys]) expect(answer.text).not.toContain(hidden);
    expect((await exportOf(good.stack)).text).toBe(good.texts[0]);
    s3.fault = () => undefined;
    expect((await exportOf(bad.stack)).text).toBe(bad.texts[0]);
  },
);

test('a state whose object is gone is damaged, not missing, and others are read', async () => {
  const bad = await stackWithState();
  const good = await stackWithState();
  for (const key of bad.keys) s3.objects.delete(key);
  const answer = await exportOf(bad.stack);
  expect(answer.status).toBe(500);
  expect(answer.json.message).toContain('damaged');
  for (const key of bad.keys) expect(answer.text).not.toContain(key);
  expect((await exportOf(good.stack)).text).toBe(good.texts[0]);
});

test.each(faults)(
  'a checkpoint whose object answers %s is not acknowledged, and its retry is',
  async (_label, fault) => {
    const { stack, texts } = await stackWithState();
    const update = await startUpdate(app, stack);
    const isNew = new Set(s3.objects.keys());
    const next = JSON.parse(stateOf(60, { 1: 'next' }));
    const write = () => saveVerbatim(app, update, 1, next);
    s3.fault = (operation, key) => (operation === 'Put' && !isNew.has(key) ? fault : undefined);
    const answer = await write();
    expect({ status: answer.status, retry: answer.headers['retry-after'] }).toEqual({
      status: 503,
      retry: expect.anything(),
    });
    expect(answer.text).not.toMatch(/told so|checkpoints\//);
    expect((await exportOf(stack)).text).toBe(texts[0]);
    s3.fault = () => undefined;
    await ok(write());
    await ok(complete(app, update));
    expect((await exportOf(stack)).json.deployment).toEqual(next.deployment);
  },
);

test.each(passing)(
  'versions of a stack whose objects answer %s stay whole when they are encoded',
  async (_label, fault) => {
    const bad = await stackWithState(4);
    const good = await stackWithState(4);
    const ofBad = [...bad.keys];
    s3.fault = (operation, key) => (operation !== 'Put' && key === ofBad[1] ? fault : undefined);
    await makeDue(app);
    await encodeVersions(app.context, { encoder: createEncoder(app) }).catch(() => {});
    expect((await versionsOf(app, good.stack)).map(({ codec }) => codec)).toContain('chunks');
    expect(await exportVersions(app, good.stack, 4)).toEqual(good.texts);
    s3.fault = () => undefined;
    expect(await exportVersions(app, bad.stack, 4)).toEqual(bad.texts);
    await makeDue(app, bad.stack);
    await encodeVersions(app.context, { encoder: createEncoder(app) });
    expect((await versionsOf(app, bad.stack)).map(({ codec }) => codec)).toContain('chunks');
    expect(await exportVersions(app, bad.stack, 4)).toEqual(bad.texts);
  },
);

test('the sweep deletes the other objects, and that which was denied later', async () => {
  const { keys } = await stackWithState(4);
  const isLeft = () => [...keys].filter((key) => s3.objects.has(key));
  // The versions are in chunks now, and nothing refers to their objects any more.
  await makeDue(app);
  await encodeVersions(app.context, { encoder: createEncoder(app) });
  await query(
    app,
    `update blobs set unreferenced_since = now() - interval '1 hour' where unreferenced_since is not null`,
  );
  const [denied] = (
    await query<{ key: string }>(app, `select key from blobs where unreferenced_since is not null and key = any($1)`, [
      [...keys],
    ])
  ).map(({ key }) => key);
  s3.fault = (operation, key) =>
    operation === 'Delete' && key === denied ? (response) => sendError(response, 403, 'AccessDenied') : undefined;
  await expect(sweepBlobs(app.context)).rejects.toMatchObject({ fault: 'denied' });
  const left = isLeft();
  expect(left).toContain(denied);
  expect(left.length).toBeLessThan(3);
  s3.fault = () => undefined;
  await query(app, `update blobs set delete_at = now() where delete_at > now()`);
  await sweepBlobs(app.context);
  expect(isLeft()).not.toContain(denied);
});

test.each<[string, Fault]>([
  ['503 SlowDown', (response) => sendError(response, 503, 'SlowDown')],
  ['an error with status 200', (response) => sendError(response, 200, 'InternalError')],
  ['a page of a proxy', (response) => void response.end('<html><body>Sign in</body></html>')],
  ['nothing', (response) => void response.end()],
  [
    'half a listing',
    (response) => void response.end('<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a'),
  ],
])('a listing that answers %s is an error and no empty listing', async (_label, fault) => {
  const { keys } = await stackWithState();
  s3.fault = (operation) => (operation === 'List' ? fault : undefined);
  await expect(s3.store.list('')).rejects.toMatchObject({ name: 'BlobStoreUnavailableError' });
  await expect(s3.store.findAbsent([...keys])).rejects.toMatchObject({ name: 'BlobStoreUnavailableError' });
});

test('reconciling counts no object as missing that is denied', async () => {
  const { keys } = await stackWithState();
  s3.fault = (operation, key) =>
    keys.has(key) || operation === 'List' ? (response) => sendError(response, 403, 'AccessDenied') : undefined;
  await expect(beginReconcile(app.context)).rejects.toMatchObject({ fault: 'denied' });
  s3.fault = () => undefined;
  const progress = await beginReconcile(app.context);
  // A listing without the key, as of a server with another order, leads to a question about the object itself.
  const unlisted: Fault = (response) =>
    void response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
  s3.fault = (operation, key) =>
    operation === 'List'
      ? unlisted
      : keys.has(key)
        ? (response) => sendError(response, 403, 'AccessDenied')
        : undefined;
  await expect(reconcile(app.context, progress, { objectsPerSecond: 1e9 })).rejects.toMatchObject({ status: 503 });
});
