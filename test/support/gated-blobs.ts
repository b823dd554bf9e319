import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../src/shared/platform/blobs/blob-stores.ts';
import { withPut } from './replaced-put.ts';

/** Puts of documents wait at a gate while it is shut. */
export async function openGatedBlobs(directory: string): Promise<{
  readonly blobs: BlobStore;
  readonly waiting: () => number;
  shut(): void;
  open(): void;
}> {
  const store = await openBlobStore({ kind: 'files', directory });
  let gate: PromiseWithResolvers<void> | null = null;
  let waiting = 0;
  const blobs = withPut(store, async (key, body, options) => {
    const stored = await store.put(key, body, options);
    if (!key.startsWith('checkpoints/')) return stored;
    waiting++;
    await gate?.promise;
    waiting--;
    return stored;
  });
  return {
    blobs,
    waiting: () => waiting,
    shut: () => {
      gate ??= Promise.withResolvers();
    },
    open: () => {
      gate?.resolve();
      gate = null;
    },
  };
}
