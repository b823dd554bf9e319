import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { createTestApp, type TestApp } from './test-app.ts';

/** An app that encodes versions without a limit of speed, and whose files are behind what `wrap` makes of them. */
export async function createEncodingApp(
  wrap: (files: BlobStore) => BlobStore,
): Promise<{ app: TestApp; stop: () => Promise<void> }> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'holdfast-test-'));
  const files = await openBlobStore({ kind: 'files', directory: `${dataDir}/blobs` });
  const app = await createTestApp({
    dataDir,
    settings: {
      HOLDFAST_ENCODE_BYTES_PER_SECOND: '1000000000000',
      HOLDFAST_INLINE_BYTES: '250',
      HOLDFAST_BLOB_GRACE_SECONDS: '1',
    },
    overrides: { blobs: wrap(files) },
  });
  return {
    app,
    async stop() {
      await app[Symbol.asyncDispose]();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
