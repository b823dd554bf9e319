import type { BlobStore } from '../../../shared/platform/blobs/blob-store.ts';
import { FairSemaphore, type SemaphoreLimits } from './fair-semaphore.ts';

/** A slow reader keeps a connection to the blob store; a process has 128. Other downloads wait, and get 503 after this time. */
const limits: SemaphoreLimits = {
  ...{ atOnce: 96, atOncePerCaller: 64, atOncePerOrganization: 64 },
  ...{ waiting: 512, waitingPerCaller: 512, waitMs: 20_000 },
};

const semaphores = new WeakMap<BlobStore, FairSemaphore>();

/** Admits downloads of this process that stream a blob from the store. */
export function blobDownloads(blobs: BlobStore): FairSemaphore {
  const semaphore = semaphores.get(blobs) ?? new FairSemaphore(limits);
  semaphores.set(blobs, semaphore);
  return semaphore;
}
