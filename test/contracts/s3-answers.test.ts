import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { BlobNotFoundError, BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { S3Folder } from '../../src/shared/platform/blobs/s3-folder.ts';
import { chunksOf, failingBody, mib, readAll, waitingBody } from './blob-store-suite.ts';
import { type Answer, type FakeS3, type Operation, sendError, sendPutAnswer, startFakeS3 } from './fake-s3.ts';

/** A time limit that a test waits for: a busy machine may run nothing for seconds. */
const timelyMs = 8_000;

let fake: FakeS3 | undefined;
/** Of a page after which there is none. */
const last = '<IsTruncated>false</IsTruncated>';

async function start(answer: Answer, options: Parameters<typeof startFakeS3>[1] = {}): Promise<FakeS3> {
  fake = await startFakeS3(answer, options);
  return fake;
}

afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

const failures: readonly [string, string, Answer][] = [
  ['500 InternalError', 'faulty', (response) => sendError(response, 500, 'InternalError')],
  ['502 without S3 behind it', 'faulty', (response) => void response.writeHead(502).end('<html>bad gateway</html>')],
  ['503 SlowDown', 'throttled', (response) => sendError(response, 503, 'SlowDown')],
  ['503 ServiceUnavailable', 'faulty', (response) => sendError(response, 503, 'ServiceUnavailable')],
  ['429 without a body', 'throttled', (response) => void response.writeHead(429).end()],
  ['403 AccessDenied', 'denied', (response) => sendError(response, 403, 'AccessDenied')],
  ['403 InvalidAccessKeyId', 'denied', (response) => sendError(response, 403, 'InvalidAccessKeyId')],
  ['403 RequestTimeTooSkewed', 'denied', (response) => sendError(response, 403, 'RequestTimeTooSkewed')],
  ['400 ExpiredToken', 'denied', (response) => sendError(response, 400, 'ExpiredToken')],
  ['401 without a body', 'denied', (response) => void response.writeHead(401).end()],
  ['404 NoSuchBucket', 'misconfigured', (response) => sendError(response, 404, 'NoSuchBucket')],
  ['404 from a proxy', 'misconfigured', (response) => void response.writeHead(404).end('<html>no such page</html>')],
  ['404 without a body', 'misconfigured', (response) => void response.writeHead(404).end()],
  [
    '400 AuthorizationHeaderMalformed',
    'misconfigured',
    (response) => sendError(response, 400, 'AuthorizationHeaderMalformed'),
  ],
  ['301 PermanentRedirect', 'misconfigured', (response) => sendError(response, 301, 'PermanentRedirect')],
  ['507 XMinioStorageFull', 'full', (response) => sendError(response, 507, 'XMinioStorageFull')],
  ['a cut connection', 'unreachable', (response) => void response.destroy()],
  ['no answer', 'timeout', () => {}],
  [
    'an error whose body stops halfway',
    'timeout',
    (response) => void response.writeHead(404, { 'content-length': '500' }).write('<?xml'),
  ],
  ['something that is not HTTP', 'faulty', (response) => void response.socket?.end('hello\r\n\r\n')],
];

describe('writes that a store wants a checksum for', () => {
  const sizes = [0, 1_000, 6 * mib];
  const refuse = (response: ServerResponse): void => {
    const message =
      'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters';
    response
      .writeHead(400, { 'content-type': 'application/xml' })
      .end(`<Error><Code>InvalidRequest</Code><Message>${message}</Message></Error>`);
  };
  const isRight = (md5: unknown, body: Buffer): boolean => md5 === createHash('md5').update(body).digest('base64');

  it.each(sizes)('have it: locked objects of %i bytes', async (bytes) => {
    const { store } = await start(
      (response, operation, { headers }, body) => {
        const isWrite = operation === 'Put' || operation === 'Part';
        if (isWrite && !isRight(headers['content-md5'], body)) refuse(response);
        else sendPutAnswer(response, operation);
      },
      { lock: { mode: 'COMPLIANCE', days: 30 } },
    );
    expect(await store.put('some/key', chunksOf(Buffer.alloc(bytes, 1)))).toEqual({ storedBytes: bytes });
  });

  it.each(sizes)('have it after a refusal, in a bucket that locks by default: %i bytes', async (bytes) => {
    let refused = 0;
    const { store, operations } = await start((response, operation, { headers }, body) => {
      if ((operation === 'Put' || operation === 'Part') && !isRight(headers['content-md5'], body)) {
        refused++;
        refuse(response);
      } else sendPutAnswer(response, operation);
    });
    for (const key of ['one', 'other'])
      expect(await store.put(key, chunksOf(Buffer.alloc(bytes, 1)))).toEqual({ storedBytes: bytes });
    expect(refused).toBeGreaterThan(0);
    // Parts are sent two at a time.
    expect(refused).toBeLessThanOrEqual(2);
    expect(operations).not.toContain('GiveUp');
  });

  it('have it: locks that are extended, without another checksum', async () => {
    const { store } = await start(
      (response, _, { headers }, body) => {
        const others = Object.keys(headers).filter((name) => name.includes('checksum'));
        if (others.length > 0 || !isRight(headers['content-md5'], body)) refuse(response);
        else response.end();
      },
      { lock: { mode: 'COMPLIANCE', days: 30 } },
    );
    await store.keepLocked('some/key', { storedBytes: 1, modifiedAt: new Date() });
  });

  it('are not repeated with it once they were given up', async () => {
    const given = new AbortController();
    const { store, operations } = await start((response) => {
      given.abort(new Error('given up'));
      refuse(response);
    });
    const { signal } = given;
    await expect(store.put('some/key', chunksOf(Buffer.alloc(1_000)), { signal })).rejects.toThrow('given up');
    expect(operations).toEqual(['Put']);
  });

  it.each(sizes)('have none elsewhere: %i bytes', async (bytes) => {
    const sums: string[] = [];
    const { store } = await start((response, operation, { headers }) => {
      sums.push(...Object.keys(headers).filter((name) => /md5|checksum/.test(name)));
      sendPutAnswer(response, operation);
    });
    await store.put('some/key', chunksOf(Buffer.alloc(bytes, 1)));
    expect(sums).toEqual([]);
  });
});

describe('listings that would not end, or would end too early', () => {
  const page = (keys: readonly string[], more: string): string =>
    `<ListBucketResult>${more}${keys.map((key) => `<Contents><Key>${key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`).join('')}</ListBucketResult>`;
  const truncated = '<IsTruncated>true</IsTruncated>';

  it('a store that ignores where a page should begin is faulty', async () => {
    const { store, operations } = await start((response) => void response.end(page(['a', 'b'], truncated)));
    await expect(store.findAbsent(['a', 'z'])).rejects.toMatchObject({ fault: 'faulty' });
    expect(operations).toEqual(['List', 'List']);
  });

  it('the page of a proxy is no listing of uploads', async () => {
    const { store } = await start((response) => void response.end('<html>sign in</html>'));
    await expect(store.sweepUnfinished(0, [''])).rejects.toMatchObject({ fault: 'faulty' });
  });

  it.each([
    ['without', ''],
    ['with the same', '<NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>'],
  ])('a page of uploads %s marker of the next one is faulty', async (_label, markers) => {
    const { store, operations } = await start((response) => {
      if (operations.length > 3) throw new Error('it goes on');
      response.end(`<ListMultipartUploadsResult>${truncated}${markers}</ListMultipartUploadsResult>`);
    });
    await expect(store.sweepUnfinished(0, [''])).rejects.toMatchObject({ fault: 'faulty' });
    expect(operations.length).toBeLessThanOrEqual(2);
  });

  it.each([
    ['the page of a proxy', '<html>sign in</html>'],
    ['a page without the token of the next one', page(['a'], truncated)],
    ['a page with the token of itself', page(['a'], `${truncated}<NextContinuationToken>t</NextContinuationToken>`)],
  ])('%s is no whole folder', async (_label, body) => {
    const { url, operations } = await start((response) => {
      if (operations.length > 3) throw new Error('it goes on');
      response.end(body);
    });
    const folder = new S3Folder({
      ...{ endpoint: url, bucket: 'blobs', region: 'us-east-1', forcePathStyle: true, requestTimeoutMs: 60_000 },
      ...{ accessKeyId: 'key', secretAccessKey: 'secret', maxAttempts: 1 },
    });
    const listing = async (): Promise<void> => {
      for await (const file of folder.list('')) expect(file.name).toBe('a');
    };
    await expect(listing()).rejects.toMatchObject({ fault: 'faulty' });
    expect(operations.length).toBeLessThanOrEqual(2);
    await folder.close();
  });
});

describe('invalid S3 responses', () => {
  it.each(failures)('%s is treated neither as a missing blob nor as success', async (_label, fault, answer) => {
    const { store } = await start(answer, fault === 'timeout' ? { requestTimeoutMs: 300 } : {});
    const calls = [
      () => store.open('some/key'),
      () => store.stat('some/key'),
      () => store.delete('some/key'),
      () => store.list('some/'),
      () => store.sweepUnfinished(0, ['']),
      () => store.check(1_000),
      () => store.createBucketIfMissing(),
      () => store.put('some/key', chunksOf(Buffer.from('x'))),
      () => store.put('some/key', chunksOf(Buffer.alloc(6 * mib))),
    ];
    const outcomes = await Promise.all(calls.map((call) => Promise.resolve(call()).catch((error: unknown) => error)));
    for (const outcome of outcomes) expect(outcome).toBeInstanceOf(BlobStoreUnavailableError);
    // The responses to HEAD, second and sixth here, have only a status.
    for (const index of [0, 2, 3, 4, 7, 8]) expect(outcomes[index]).toMatchObject({ fault, status: 503 });
  });

  it('only a response of S3 itself counts as a missing blob', async () => {
    const { store, operations } = await start((response) => sendError(response, 404, 'NoSuchKey'));
    await expect(store.open('some/key')).rejects.toBeInstanceOf(BlobNotFoundError);
    expect(await store.stat('some/key')).toBeNull();
    expect(operations).toEqual(['Get', 'Head', 'Get']);
  });

  it('reports an unreachable server', async () => {
    const { store, close } = await start(() => {});
    await close();
    await expect(store.open('some/key')).rejects.toMatchObject({ fault: 'unreachable' });
  });

  it('sweeps the other unfinished uploads when one is denied', async () => {
    const upload = (key: string) =>
      `<Upload><Key>${key}</Key><UploadId>u</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>`;
    const removed: string[] = [];
    const { store } = await start((response, operation, { url = '' }) => {
      if (operation === 'List') {
        response.end(
          `<ListMultipartUploadsResult>${last}${upload('first')}${upload('second')}</ListMultipartUploadsResult>`,
        );
      } else if (url.includes('first')) sendError(response, 403, 'AccessDenied');
      else {
        removed.push(url);
        response.writeHead(204).end();
      }
    });
    await expect(store.sweepUnfinished(0, [''])).rejects.toMatchObject({ fault: 'denied' });
    expect(removed).toEqual([expect.stringContaining('second')]);
  });

  it('sweeps no unfinished uploads of others in its bucket', async () => {
    const keys = ['backups-prefix/backups/1/tables/updates.zst', 'foreign/film', 'checkpoints/aa/bb', 'checkpoints'];
    const uploads = keys.map(
      (key) =>
        `<Upload><Key>${key}</Key><UploadId>u</UploadId><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload>`,
    );
    const removed: string[] = [];
    const { store } = await start((response, operation, { url = '' }) => {
      if (operation === 'List') {
        response.end(`<ListMultipartUploadsResult>${last}${uploads.join('')}</ListMultipartUploadsResult>`);
        return;
      }
      removed.push(url);
      response.writeHead(204).end();
    });
    expect(await store.sweepUnfinished(0, ['checkpoints/', 'audit/'])).toBe(1);
    expect(removed).toEqual([expect.stringContaining('/checkpoints/aa/bb?')]);
  });

  it.each([2, -2])(
    'measures the age of uploads and locks by the clock of S3, with its own off by %i hours',
    async (hours) => {
      const initiated = new Date();
      const lockedUntil: number[] = [];
      let aborted = 0;
      const { store } = await start(
        (response, operation, { headers }) => {
          const until = headers['x-amz-object-lock-retain-until-date'];
          if (typeof until === 'string') lockedUntil.push(Date.parse(until));
          if (operation === 'List')
            response.end(
              `<ListMultipartUploadsResult>${last}<Upload><Key>key</Key><UploadId>u</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload></ListMultipartUploadsResult>`,
            );
          else if (operation === 'Put') sendPutAnswer(response, operation);
          else {
            aborted++;
            response.writeHead(204).end();
          }
        },
        { lock: { mode: 'GOVERNANCE', days: 1 } },
      );
      const now = Date.now.bind(Date);
      const shifted = jest.spyOn(Date, 'now').mockImplementation(() => now() + hours * 3_600_000);
      try {
        expect(await store.sweepUnfinished(3_600_000, [''])).toBe(0);
        expect(aborted).toBe(0);
        await store.put('key', chunksOf(Buffer.from('x')));
      } finally {
        shifted.mockRestore();
      }
      expect(Math.abs((lockedUntil[0] as number) - initiated.getTime() - 86_400_000)).toBeLessThan(60_000);
      initiated.setTime(Date.now() - 7_200_000);
      expect(await store.sweepUnfinished(3_600_000, [''])).toBe(1);
    },
  );

  it('retries after a transient fault', async () => {
    let asked = 0;
    const { store } = await start(
      (response) => (++asked < 3 ? sendError(response, 503, 'SlowDown') : void response.end('found')),
      { maxAttempts: 3 },
    );
    expect((await readAll(await store.open('some/key'))).toString()).toBe('found');
  });

  it('retries when there is no response', async () => {
    let asked = 0;
    const { store } = await start((response) => void (++asked > 1 && response.end('found')), {
      requestTimeoutMs: timelyMs,
      maxAttempts: 2,
    });
    expect((await readAll(await store.open('some/key'))).toString()).toBe('found');
  });
});

describe('reading S3 bodies', () => {
  const half = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-length': '10' }).write('12345');
  };
  const cutAfterHalf: Answer = async (response) => {
    half(response);
    await sleep(50);
    response.destroy();
  };

  it.each<[string, string, Answer, number]>([
    ['is cut', 'unreachable', cutAfterHalf, 60_000],
    ['stops', 'timeout', half, timelyMs],
  ])('a body that %s is an error, not an end', async (_label, fault, answer, requestTimeoutMs) => {
    const { store } = await start(answer, { requestTimeoutMs });
    const body = await store.open('some/key');
    await expect(readAll(body)).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault });
  });

  it('a body that breaks before the reader starts is an error for the reader only', async () => {
    const { store } = await start(cutAfterHalf);
    const body = await store.open('some/key');
    await sleep(200);
    await expect(readAll(body)).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'unreachable' });
  });

  it('a slow server that makes progress is not cut off', async () => {
    const { store } = await start(
      async (response) => {
        response.writeHead(200, { 'content-length': '24' });
        for (const letter of 'abcdefghijklmnopqrstuvwx') {
          response.write(letter);
          await sleep(timelyMs / 20);
        }
        response.end();
      },
      { requestTimeoutMs: timelyMs, attemptTimeoutMs: timelyMs + 100 },
    );
    expect((await readAll(await store.open('some/key'))).toString()).toBe('abcdefghijklmnopqrstuvwx');
  });

  it('a slow reader loses nothing', async () => {
    const bytes = Buffer.alloc(8 * mib, 7);
    const { store } = await start((response) => void response.end(bytes), {
      requestTimeoutMs: timelyMs,
    });
    let found = 0;
    for await (const chunk of await store.open('some/key')) {
      if (found === 0) await sleep(timelyMs + 1_000);
      found += chunk.length;
    }
    expect(found).toBe(bytes.length);
  });
});

describe('failing S3 puts', () => {
  /**
   * Works normally but holds the requests of one kind until released; `arrived` resolves once `count` of them have
   * arrived.
   */
  const holding = (held: Operation, count = 1) => {
    const arrived = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    let waiting = 0;
    const answer: Answer = async (response, operation) => {
      if (operation === held) {
        if (++waiting === count) arrived.resolve();
        await gate.promise;
      }
      sendPutAnswer(response, operation);
    };
    return { answer, arrived: arrived.promise, letGo: gate.resolve };
  };

  it.each<[Operation, number]>([
    ['Put', 1000],
    ['Complete', 6 * mib],
  ])('a signal during %s, which may have been done already, is ignored', async (held, size) => {
    const { answer, arrived, letGo } = holding(held);
    const { store } = await start(answer);
    const abort = new AbortController();
    const done = store.put('some/key', chunksOf(Buffer.alloc(size)), { signal: abort.signal });
    await arrived;
    abort.abort();
    letGo();
    expect(await done).toEqual({ storedBytes: size });
  });

  it.each<[string, Operation, number, number]>([
    ['the first request', 'Create', 1, 12 * mib],
    ['a part', 'Part', 1, 12 * mib],
    ['the last parts, after the end of the body,', 'Part', 2, 6 * mib],
  ])('a signal during %s aborts the upload after the response', async (_label, held, count, size) => {
    const { answer, arrived, letGo } = holding(held, count);
    const { store, operations } = await start(answer);
    const abort = new AbortController();
    const reason = new Error('the lease is lost');
    const done = store.put('some/key', chunksOf(Buffer.alloc(size)), { signal: abort.signal });
    await arrived;
    abort.abort(reason);
    letGo();
    await expect(done).rejects.toBe(reason);
    expect(operations.at(-1)).toBe('GiveUp');
    expect(operations).not.toContain('Complete');
  });

  it('larger bodies are put in larger parts', async () => {
    const { store, operations } = await start((response, operation) => sendPutAnswer(response, operation, 12 * mib));
    await store.put('some/key', chunksOf(Buffer.alloc(12 * mib)), { expectedBytes: 40_000 * mib });
    expect(operations.filter((operation) => operation === 'Part')).toHaveLength(2);
  });

  it('a part that fails ends the put although the body waits', async () => {
    const { store, operations } = await start((response, operation) =>
      operation === 'Part' ? sendError(response, 403, 'AccessDenied') : sendPutAnswer(response, operation),
    );
    const source = waitingBody(Buffer.alloc(6 * mib));
    await expect(store.put('some/key', source.body)).rejects.toMatchObject({ fault: 'denied' });
    expect(operations).toEqual(['Create', 'Part', 'GiveUp']);
  });

  it.each<[string, Answer]>([
    ['fails', (response) => sendError(response, 500, 'InternalError')],
    ['is never answered', () => {}],
  ])('a cleanup that %s does not hide the error of the body', async (_label, answer) => {
    const { store } = await start(
      (response, operation, request, body) =>
        operation === 'GiveUp' ? answer(response, operation, request, body) : sendPutAnswer(response, operation),
      { requestTimeoutMs: timelyMs },
    );
    const error = new Error('the client went away');
    await expect(store.put('some/key', failingBody(Buffer.alloc(6 * mib), error))).rejects.toBe(error);
  });

  it('an error inside a 200 response to the last request is an error', async () => {
    const { store } = await start((response, operation) =>
      operation === 'Complete' ? sendError(response, 200, 'InternalError') : sendPutAnswer(response, operation),
    );
    await expect(store.put('some/key', chunksOf(Buffer.alloc(6 * mib)))).rejects.toBeInstanceOf(
      BlobStoreUnavailableError,
    );
  });

  it.each([
    ['is short', 6 * mib - 1],
    ['is empty', 0],
    ['is too long', 12 * mib],
  ])('an object that %s after it was acknowledged is an error, and is deleted', async (_label, keptBytes) => {
    const { store, operations } = await start((response, operation) => sendPutAnswer(response, operation, keptBytes));
    await expect(store.put('some/key', chunksOf(Buffer.alloc(6 * mib)))).rejects.toMatchObject({
      name: 'BlobStoreUnavailableError',
      fault: 'faulty',
      status: 503,
    });
    expect(operations).toContain('Delete');
  });

  it.each<[string, Answer]>([
    ['an empty answer', (response) => void response.writeHead(200).end()],
    ['a page of a proxy', (response) => void response.end('<html><body>Sign in</body></html>')],
  ])('%s to the last request is an error if there is no object', async (_label, answer) => {
    const { store } = await start((response, operation, request, body) => {
      if (operation === 'Head') sendError(response, 404, '');
      else if (operation === 'Complete') return answer(response, operation, request, body);
      else sendPutAnswer(response, operation);
    });
    await expect(store.put('some/key', chunksOf(Buffer.alloc(6 * mib)))).rejects.toBeInstanceOf(
      BlobStoreUnavailableError,
    );
  });

  it('an object that another put has replaced since stays', async () => {
    const { store, operations } = await start((response, operation) =>
      operation === 'Head'
        ? void response.writeHead(200, { etag: '"f"', 'content-length': 1 }).end()
        : sendPutAnswer(response, operation),
    );
    expect(await store.put('some/key', chunksOf(Buffer.alloc(6 * mib)))).toEqual({ storedBytes: 6 * mib });
    expect(operations).not.toContain('Delete');
  });
});
