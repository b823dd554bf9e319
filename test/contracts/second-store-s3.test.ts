import { expect, test } from '@jest/globals';
import { readSmall } from '../../src/shared/backup/stored-bytes.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { MirroredBlobStore } from '../../src/shared/platform/blobs/second/mirrored-blob-store.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { describeOnS3 } from './s3-under-test.ts';

await describeOnS3('versitygw', (server) => {
  async function open() {
    const { createBucket, endpoint, ...access } = server();
    const options = {
      ...access,
      forcePathStyle: true,
      bucket: 'near',
      requestTimeoutMs: 60_000,
      connectTimeoutMs: 60_000,
    };
    const noted: string[] = [];
    const queue = {
      add: async (key: string) => noted.push(key),
      addAll: async (keys: readonly string[]) => noted.push(...keys),
      listCopies: async () => [],
    };
    const stores = {
      near: new S3BlobStore({ ...options, endpoint }),
      far: new S3BlobStore({ ...options, endpoint, prefix: 'far/' }),
      away: new S3BlobStore({ ...options, endpoint: `http://127.0.0.1:${await findFreePort()}` }),
    };
    const close = async (): Promise<void> => {
      for (const store of Object.values(stores)) await store.close();
    };
    return { ...stores, createBucket, noted, queue, [Symbol.asyncDispose]: close };
  }

  test('a write without the second bucket is noted, or refused if the second store is strict', async () => {
    await using stores = await open();
    const { away, createBucket, near, noted, queue } = stores;
    await createBucket('near');
    const put = (store: MirroredBlobStore, key: string) => store.put(key, once(Buffer.from('bytes')));
    await put(new MirroredBlobStore({ main: near, second: away, queue }), 'audit/noted');
    expect(noted).toEqual(['audit/noted']);
    const strict = new MirroredBlobStore({ main: near, second: away, queue, isStrict: true });
    for (const key of ['audit/refused', 'audit/refused-at-once'])
      await expect(put(strict, key)).rejects.toMatchObject({ status: 503, retryAfterSeconds: expect.any(Number) });
    expect(noted).toEqual(['audit/noted']);
    expect(await near.findAbsent(['audit/noted', 'audit/refused-at-once'])).toEqual(['audit/refused-at-once']);
  });

  test('a strict write that began before another one failed is refused, too', async () => {
    await using stores = await open();
    const { away, near, noted, queue } = stores;
    const strict = new MirroredBlobStore({ main: near, second: away, queue, isStrict: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = async function* (): AsyncGenerator<Buffer> {
      await promise;
      yield Buffer.from('bytes');
    };
    const begun = strict.put('audit/slow', slow());
    await expect(strict.put('audit/quick', once(Buffer.from('bytes')))).rejects.toMatchObject({ status: 503 });
    resolve();
    await expect(begun).rejects.toMatchObject({ status: 503 });
    expect(noted).toEqual([]);
  });

  test('while the first bucket is away, blobs are read and listed from the second one', async () => {
    await using stores = await open();
    const { away, far, near, noted, queue } = stores;
    await new MirroredBlobStore({ main: near, second: far, queue }).put('audit/some', once(Buffer.from('bytes')));
    const mirrored = new MirroredBlobStore({ main: away, second: far, queue });
    expect((await mirrored.list('audit/')).blobs.map(({ key }) => key)).toEqual(['audit/some']);
    expect((await readSmall(mirrored, 'audit/some')).toString()).toBe('bytes');
    expect(await mirrored.stat('audit/some')).toMatchObject({ storedBytes: 5 });
    await expect(readSmall(mirrored, 'audit/none')).rejects.toMatchObject({ status: 503 });
    await expect(mirrored.stat('audit/none')).rejects.toMatchObject({ status: 503 });
    // What the first bucket lacks is noted.
    await near.delete('audit/some');
    const whole = new MirroredBlobStore({ main: near, second: far, queue });
    expect((await readSmall(whole, 'audit/some')).toString()).toBe('bytes');
    expect(noted).toEqual(['audit/some']);
  });
});
