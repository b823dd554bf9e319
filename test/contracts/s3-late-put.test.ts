import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import { chunksOf, readAll } from './blob-store-suite.ts';
import { describeOnS3 } from './s3-under-test.ts';

/** A proxy that buffers all data until it thaws, then delivers all of it, even if the clients are gone. */
async function openFrozenProxy(endpoint: string) {
  const { hostname, port } = new URL(endpoint);
  const taken: Buffer[][] = [];
  const clients: Socket[] = [];
  const server = createServer((client) => {
    const chunks: Buffer[] = [];
    taken.push(chunks);
    clients.push(client);
    client.on('data', (chunk) => void chunks.push(chunk)).on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => taken.length,
    thaw: async (): Promise<void> => {
      for (const chunks of taken) {
        const upstream = connect(Number(port), hostname);
        upstream.write(Buffer.concat(chunks));
        await once(upstream, 'data');
        upstream.destroy();
      }
    },
    close: async (): Promise<void> => {
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

await describeOnS3('versitygw', (server) => {
  it('stores a put that timed out, after a delete that was acknowledged', async () => {
    const { endpoint, region, accessKeyId, secretAccessKey } = server();
    const where = {
      ...{ region, accessKeyId, secretAccessKey, bucket: 'late', forcePathStyle: true },
      connectTimeoutMs: 60_000,
    };
    const direct = new S3BlobStore({ ...where, endpoint, requestTimeoutMs: 60_000 });
    await direct.createBucketIfMissing();
    const proxy = await openFrozenProxy(endpoint);
    const behind = new S3BlobStore({ ...where, endpoint: proxy.url, requestTimeoutMs: 5_000, maxAttempts: 2 });
    try {
      const bytes = Buffer.from('late');
      await expect(behind.put('key', chunksOf(bytes))).rejects.toMatchObject({ fault: 'timeout' });
      expect(proxy.requests()).toBe(2);
      await direct.delete('key');
      expect(await direct.stat('key')).toBeNull();
      await proxy.thaw();
      expect(await readAll(await direct.open('key'))).toEqual(bytes);
    } finally {
      await Promise.all([behind.close(), direct.close(), proxy.close()]);
    }
  });
});
