import { createHash } from 'node:crypto';
import { readdirSync, renameSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { type S3Server, startS3Server } from '../../testkit/s3-server.ts';
import { mib } from '../contracts/blob-store-suite.ts';
import { SmallDisk } from '../support/small-disk.ts';

const disk = SmallDisk.mount(128 * mib);
afterAll(() => disk?.[Symbol.dispose]());

/** What the SDK is about to send. */
interface SignedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly headers: Record<string, string>;
  readonly hostname: string;
  readonly port: number;
  readonly body: Buffer;
}

const Bucket = 'blobs';
const partBytes = 5 * mib;

// Asked without our own store, which checks the server's answers itself.
(disk ? describe : describe.skip)('the S3 server of the compose file on a full disk', () => {
  let server: S3Server;
  let client: S3Client;
  let signer: S3Client;

  beforeAll(async () => {
    server = await startS3Server('versitygw', (disk as SmallDisk).directory);
    await server.createBucket(Bucket);
    const { endpoint, region, accessKeyId, secretAccessKey } = server;
    const credentials = { accessKeyId, secretAccessKey };
    const common = { endpoint, region, credentials, forcePathStyle: true, maxAttempts: 1 };
    const checks = {
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    } as const;
    client = new S3Client({ ...common, ...checks });
    signer = new S3Client({ ...common, ...checks });
  });
  afterEach(() => disk?.freeCapacity());
  afterAll(async () => {
    client.destroy();
    signer.destroy();
    await server.stop();
  });

  interface Uploaded {
    readonly content: Buffer;
    complete(): Promise<number>;
  }

  /** Uploads all parts of an object, and returns the request that makes it of them. */
  async function upload(Key: string, bytes: number, letter: string): Promise<Uploaded> {
    const content = Buffer.alloc(bytes, `${letter} ${Key} `);
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
    for (let start = 0; start < bytes; start += partBytes) {
      const PartNumber = Parts.length + 1;
      const Body = content.subarray(start, start + partBytes);
      const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
      Parts.push({ PartNumber, ETag });
    }
    const command = () => new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
    return { content, complete: () => statusOf(() => client.send(command())) };
  }

  const put = (Key: string, Body: Buffer): Promise<number> =>
    statusOf(() => client.send(new PutObjectCommand({ Bucket, Key, Body })));

  async function read(Key: string): Promise<Buffer | null> {
    try {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      return Buffer.from((await Body?.transformToByteArray()) ?? []);
    } catch (error) {
      if (error instanceof S3ServiceException && error.name === 'NoSuchKey') return null;
      throw error;
    }
  }

  /** For a failed comparison: which object it is, without its bytes. */
  async function stateOf(key: string, known: Record<string, Buffer>): Promise<string> {
    const found = await read(key);
    if (found === null) return 'none';
    return Object.keys(known).find((name) => known[name]?.equals(found)) ?? `${found.length} other bytes`;
  }

  // In tmpfs, a page of room more or less decides about the last bytes and the attributes.
  const rooms = [0, 4_096, mib, partBytes, partBytes + 8_192, 11 * mib];

  test.each([6 * mib, 2 * partBytes])(
    'an object of several parts (%d bytes) is whole when it is acknowledged, and else not there',
    async (bytes) => {
      for (const room of rooms) {
        const [fresh, replaced] = [`fresh/${bytes}/${room}`, `replaced/${bytes}/${room}`];
        const older = Buffer.from(`older ${replaced}`);
        expect(await put(replaced, older)).toBe(200);
        for (const [key, before] of [
          [fresh, 'none'],
          [replaced, 'older'],
        ] as const) {
          const { content, complete } = await upload(key, bytes, 'newer');
          const known = { newer: content, older };
          disk?.fill(room);
          const status = await complete();
          const state = await stateOf(key, known);
          expect({ key, status, state }).toEqual(
            status === 200 ? { key, status, state: 'newer' } : { key, status: 507, state: before },
          );
          disk?.freeCapacity();
          // The parts are still there.
          if (status !== 200) expect({ key, status: await complete() }).toEqual({ key, status: 200 });
          expect({ key, state: await stateOf(key, known) }).toEqual({ key, state: 'newer' });
          await client.send(new DeleteObjectCommand({ Bucket, Key: key }));
        }
      }
    },
  );

  test('an object of one part is whole when it is acknowledged, and else not there', async () => {
    for (const room of [0, 4_096, mib - 4_096, mib, mib + 8_192]) {
      const [fresh, replaced] = [`single/${room}`, `single-replaced/${room}`];
      const older = Buffer.from(`older ${replaced}`);
      expect(await put(replaced, older)).toBe(200);
      for (const [key, before] of [
        [fresh, 'none'],
        [replaced, 'older'],
      ] as const) {
        const newer = Buffer.alloc(mib, `newer ${key} `);
        disk?.fill(room);
        const status = await put(key, newer);
        const state = await stateOf(key, { newer, older });
        disk?.freeCapacity();
        expect({ key, isStored: status === 200, state }).toEqual({
          key,
          isStored: status === 200,
          state: status === 200 ? 'newer' : before,
        });
        expect(await put(key, newer)).toBe(200);
        expect(await stateOf(key, { newer })).toBe('newer');
      }
    }
  });

  test('nothing of an attempt that failed is listed', async () => {
    const { content, complete } = await upload('listed/a', 6 * mib, 'newer');
    disk?.fill();
    expect(await complete()).toBe(507);
    expect(await put('listed/b', content)).toBe(507);
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'listed/' }));
    expect(Contents).toEqual([]);
    disk?.freeCapacity();
  });

  test('an upload that another request completes, or that there is not, is not acknowledged for an older object', async () => {
    const key = 'twice';
    expect(await put(key, Buffer.from('older'))).toBe(200);
    const { content, complete } = await upload(key, 12 * mib, 'newer');
    const states = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const status = await complete();
        return { status, state: status === 200 ? await stateOf(key, { newer: content }) : '' };
      }),
    );
    expect(states.filter(({ status }) => status === 200)).not.toEqual([]);
    for (const { status, state } of states) if (status === 200) expect(state).toBe('newer');
    // As after a lost answer.
    expect(await complete()).toBe(200);
    const next = Buffer.from('next');
    expect(await put(key, next)).toBe(200);
    expect(await complete()).toBeGreaterThanOrEqual(400);
    expect(await stateOf(key, { next })).toBe('next');
  });

  test('an upload that a killed server was completing can be completed', async () => {
    const key = 'killed';
    const { content, complete } = await upload(key, 6 * mib, 'newer');
    await server.kill();
    const [folder = ''] = readdirSync((disk as SmallDisk).directory);
    const ofKey = createHash('sha256').update(key).digest('hex');
    const uploads = path.join((disk as SmallDisk).directory, folder, Bucket, '.sgwtmp/multipart', ofKey);
    for (const name of readdirSync(uploads)) {
      renameSync(path.join(uploads, name), path.join(uploads, `${name}.etag-2.inprogress`));
    }
    await server.restart();
    expect(await complete()).toBe(200);
    expect(await stateOf(key, { content })).toBe('content');
  });

  test('a body that ends early replaces nothing', async () => {
    const Key = 'short';
    const older = Buffer.from('older');
    expect(await put(Key, older)).toBe(200);
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
    const Body = Buffer.alloc(70_000, 'newer');
    expect(await sendShort(signer, new PutObjectCommand({ Bucket, Key, Body }))).toContain(' 400 ');
    expect(await stateOf(Key, { older })).toBe('older');
    const part = new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body });
    expect(await sendShort(signer, part)).toContain(' 400 ');
  });
});

/** Ends the body halfway, where no signature covers it, as over TLS. Resolves with the status line. */
async function sendShort(signer: S3Client, command: PutObjectCommand | UploadPartCommand): Promise<string> {
  signer.middlewareStack.add(
    (next) => (args) => {
      (args.request as SignedRequest).headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return next(args);
    },
    { step: 'build', name: 'unsigned', override: true },
  );
  const signed = Promise.withResolvers<SignedRequest>();
  signer.middlewareStack.add(
    () =>
      async ({ request }) => {
        signed.resolve(request as SignedRequest);
        throw new Error('sent without the client');
      },
    { step: 'deserialize', name: 'unsent', override: true },
  );
  await signer.send(command as PutObjectCommand).catch(() => undefined);
  const { method, path, query, headers, hostname, port, body } = await signed.promise;
  const search = new URLSearchParams(query);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const socket = connect({ host: hostname, port, allowHalfOpen: true });
  socket.write([`${method} ${path}?${search} HTTP/1.1`, ...lines, 'connection: close', '', ''].join('\r\n'));
  socket.end(body.subarray(0, body.length / 2));
  const answer = (await socket.toArray()).join('');
  return answer.slice(0, answer.indexOf('\r\n'));
}

async function statusOf(send: () => Promise<{ $metadata: { httpStatusCode?: number } }>): Promise<number> {
  try {
    return (await send()).$metadata.httpStatusCode ?? 0;
  } catch (error) {
    if (error instanceof S3ServiceException) return error.$metadata.httpStatusCode ?? 0;
    throw error;
  }
}
