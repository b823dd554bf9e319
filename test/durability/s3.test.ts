import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { syncPath } from '../../src/shared/platform/files/durable-files.ts';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { chunksOf, mib, readAll } from '../contracts/blob-store-suite.ts';
import { describeOnLossyDisk, LossyDisk, losses } from './support/lossy-disk.ts';

/** Below one part of a multipart upload, and a few parts. */
const sizes = [1, 70_000, mib, 6 * mib];

await describeOnLossyDisk('the S3 server of the compose file after a power cut', () => {
  let disk: LossyDisk;
  let server: S3Server;
  let store: S3BlobStore;

  beforeEach(async () => {
    disk = await LossyDisk.mount();
    server = await startS3Server('versitygw', disk.directory);
    // The server's folder is a mounted volume in production; here it was just created.
    syncPath(disk.directory);
    const { endpoint, region, accessKeyId, secretAccessKey } = server;
    const where = {
      endpoint,
      region,
      accessKeyId,
      secretAccessKey,
      bucket: 'holdfast-checkpoints',
      forcePathStyle: true,
    };
    store = new S3BlobStore({ ...where, requestTimeoutMs: 60_000, connectTimeoutMs: 60_000, maxAttempts: 1 });
    await store.createBucketIfMissing();
  });
  afterEach(async () => {
    await store.close();
    await server.stop();
    await disk[Symbol.asyncDispose]();
  });

  test.each(losses.slice(0, 2))(
    'stored objects are complete, and no object is partially there (lost: %s)',
    async (_, loss) => {
      const stored = new Set<string>();
      const enough = Promise.withResolvers<void>();
      const contentOf = (key: string): Buffer => {
        const [, lane, at] = key.split('/').map(Number) as [number, number, number];
        return Buffer.alloc(sizes[(lane + at) % sizes.length] as number, `${key} `);
      };
      let isRestarted = false;
      // A writer can be between two puts for as long as the server is away.
      const putUntilCut = async (lane: number): Promise<void> => {
        for (let at = 0; !isRestarted; at++) {
          const key = `blob/${lane}/${at}`;
          await store.put(key, chunksOf(contentOf(key)));
          stored.add(key);
          if (stored.size === 10) enough.resolve();
        }
      };
      const lanes = Promise.allSettled([1, 2, 3].map(putUntilCut));
      await Promise.race([enough.promise, lanes]);
      const acknowledged = [...stored];
      await server.kill();
      await disk.cut(loss);
      await disk.restore();
      await server.restart();
      isRestarted = true;
      await lanes;

      expect(acknowledged.length).toBeGreaterThanOrEqual(10);
      for (const key of acknowledged) {
        expect({ key, whole: (await readAll(await store.open(key))).equals(contentOf(key)) }).toEqual({
          key,
          whole: true,
        });
      }
      const { blobs } = await store.list('');
      for (const { key } of blobs) {
        expect({ key, whole: (await readAll(await store.open(key))).equals(contentOf(key)) }).toEqual({
          key,
          whole: true,
        });
      }
    },
  );

  test('a deleted object stays deleted', async () => {
    await store.put('blob/a', chunksOf(Buffer.from('a')));
    await store.put('blob/b', chunksOf(Buffer.from('b')));
    await store.delete('blob/a');
    await server.kill();
    await disk.cut();
    await disk.restore();
    await server.restart();
    expect((await store.list('')).blobs.map(({ key }) => key)).toEqual(['blob/b']);
  });
});
