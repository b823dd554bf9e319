import { expect, test } from '@jest/globals';
import { MemoryBlobs } from '../../../test/support/memory-blobs.ts';
import { BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { parseConfig } from '../platform/config/config.ts';
import { openTarget, sweepUploads } from './backup-target.ts';

test.each([
  ['/srv/holdfast/blobs', 'belongs elsewhere', { HOLDFAST_DATA_DIR: '/srv/holdfast' }],
  ['/srv/holdfast/blobs/backups', 'belongs elsewhere', { HOLDFAST_DATA_DIR: '/srv/holdfast' }],
  ['s3://states', 'is the bucket of the blob store', { HOLDFAST_S3_BUCKET: 'states' }],
])('backups in %s, where the blobs are, are refused', async (location, reason, settings) => {
  await expect(openTarget(location, parseConfig(settings))).rejects.toThrow(reason);
});

test.each(['denied', 'misconfigured', 'faulty'] as const)(
  'a listing of uploads that is %s ends no backup',
  async (fault) => {
    const target = new MemoryBlobs();
    target.sweepUnfinished = () => Promise.reject(new BlobStoreUnavailableError(fault, 'no answer'));
    await expect(sweepUploads(target)).resolves.toBeUndefined();
  },
);
