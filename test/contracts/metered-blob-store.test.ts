import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type BlobStore, BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { MeteredBlobStore } from '../../src/shared/platform/blobs/metered-blob-store.ts';
import { createMetrics, type Metrics } from '../../src/shared/platform/telemetry/metrics.ts';
import { chunksOf, failingBody, readAll } from './blob-store-suite.ts';

describe('metered blob store', () => {
  let directory: string;
  let metrics: Metrics;
  let inner: BlobStore;
  let store: MeteredBlobStore;

  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'holdfast-metered-'));
    metrics = createMetrics();
    inner = await FileBlobStore.open({ directory });
    store = new MeteredBlobStore(inner, metrics);
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const faults = async (): Promise<string[]> =>
    (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('holdfast_blob_errors_total{'));
  const unavailable = () => new BlobStoreUnavailableError('timeout', 'no answer');

  it('behaves like the wrapped store', async () => {
    const bytes = randomBytes(200_000);
    await store.put('a/b', chunksOf(bytes));
    expect((await readAll(await store.open('a/b'))).equals(bytes)).toBe(true);
    expect(await store.stat('a/b')).toMatchObject({ storedBytes: 200_000 });
    expect((await store.list('a/')).blobs).toHaveLength(1);
    await store.delete('a/b');
    expect(await store.sweepUnfinished(0, [''])).toBe(0);
    await store.check(60_000);
    const text = await metrics.registry.metrics();
    for (const op of ['put', 'open', 'stat', 'list', 'delete', 'sweep', 'check'])
      expect(text).toContain(`holdfast_blob_seconds_count{op="${op}"} 1\n`);
    expect(await faults()).toEqual([]);
  });

  it('closes the body when a reader stops early', async () => {
    let left = false;
    inner.open = async () =>
      (async function* () {
        try {
          for (;;) yield Buffer.from('more');
        } finally {
          left = true;
        }
      })();
    for await (const _chunk of await store.open('any')) break;
    expect(left).toBe(true);
  });

  it('counts faults of the store, before and during a body', async () => {
    inner.stat = async () => Promise.reject(unavailable());
    inner.open = async () => failingBody(Buffer.from('half'), unavailable());
    await expect(store.stat('any')).rejects.toThrow(BlobStoreUnavailableError);
    await expect(readAll(await store.open('any'))).rejects.toThrow(BlobStoreUnavailableError);
    expect((await faults()).sort()).toEqual([
      'holdfast_blob_errors_total{op="read",error="timeout"} 1',
      'holdfast_blob_errors_total{op="stat",error="timeout"} 1',
    ]);
  });

  it('counts neither missing blobs nor errors of its callers', async () => {
    await expect(store.open('not/there')).rejects.toThrow('does not exist');
    await expect(store.put('a', failingBody(Buffer.from('x'), new Error('client disconnected')))).rejects.toThrow(
      'client disconnected',
    );
    await expect(store.put('a', chunksOf(Buffer.from('x')), { signal: AbortSignal.abort() })).rejects.toThrow();
    await expect(store.stat('NO KEY')).rejects.toThrow(TypeError);
    expect(await faults()).toEqual([]);
  });
});
