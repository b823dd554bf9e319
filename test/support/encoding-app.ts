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
      encodeBytesPerSecond: 1_000_000_000_000,
      HOLDFAST_INLINE_BYTES: '250',
      blobGraceSeconds: 1,
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
