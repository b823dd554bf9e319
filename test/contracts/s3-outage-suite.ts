import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { BlobStoreUnavailableError } from '../../src/shared/platform/blobs/blob-store.ts';
import { S3BlobStore } from '../../src/shared/platform/blobs/s3-blob-store.ts';
import type { S3Options } from '../../src/shared/platform/blobs/s3-client.ts';
import type { S3Server } from '../../testkit/s3-server.ts';
import { startStopwatch } from '../support/running-time.ts';
import { chunksOf, mib, readAll, waitingBody } from './blob-store-suite.ts';

/** Far above two attempts of three seconds each plus overhead, and far below the default time limits. */
const limitMs = 25_000;

/** For calls some of which are answered and some are not: longer than a busy machine needs for those that are. */
const hesitation = { requestTimeoutMs: 12_000, connectTimeoutMs: 12_000, maxAttempts: 1 };
/** For calls that must be answered, however busy the machine is. */
const patience = { requestTimeoutMs: 60_000, connectTimeoutMs: 60_000 };

/** The behavior of a store while its server is away, slow or killed. */
export function describeOutages(name: string, server: () => S3Server): void {
  describe(`outages of ${name}`, () => {
    const stores: S3BlobStore[] = [];

    const newStore = (options: Partial<S3Options> = {}): S3BlobStore => {
      const { endpoint, region, accessKeyId, secretAccessKey } = server();
      const limits = { requestTimeoutMs: 3_000, connectTimeoutMs: 3_000, maxAttempts: 2 };
      const where = { endpoint, region, accessKeyId, secretAccessKey, bucket: 'outages', forcePathStyle: true };
      const opened = new S3BlobStore({ ...where, ...limits, ...options });
      stores.push(opened);
      return opened;
    };

    beforeEach(async () => {
      const patient = newStore(patience);
      await patient.createBucketIfMissing();
      await patient.put('there', chunksOf(Buffer.from('bytes')));
    });
    afterEach(async () => {
      await Promise.all(stores.splice(0).map((opened) => opened.close()));
    });

    /** Every call on `on`, each with its outcome and duration. */
    async function callAll(on: S3BlobStore) {
      const calls = {
        open: () => on.open('there'),
        'open of what is not there': () => on.open('not/there'),
        stat: () => on.stat('there'),
        'stat of what is not there': () => on.stat('not/there'),
        delete: () => on.delete('not/there'),
        list: () => on.list(''),
        sweep: () => on.sweepUnfinished(3_600_000, ['']),
        check: () => on.check(60_000),
        'put of one part': () => on.put('new', chunksOf(Buffer.from('x'))),
        'put of many parts': () => on.put('new', chunksOf(Buffer.alloc(12 * mib))),
      };
      return Promise.all(
        Object.entries(calls).map(async ([call, run]) => {
          const elapsedMs = startStopwatch();
          const outcome = await run().then(
            () => 'success',
            (error: unknown) => (error instanceof BlobStoreUnavailableError ? error.fault : String(error)),
          );
          return { call, outcome, tookTooLong: elapsedMs() > limitMs };
        }),
      );
    }

    const allAre = (outcome: string) =>
      Array.from({ length: 10 }, () => expect.objectContaining({ outcome, tookTooLong: false }));

    it('a hanging server is reported in time and recognized as healthy again', async () => {
      server().pause();
      try {
        expect(await callAll(newStore())).toEqual(allAre('timeout'));
      } finally {
        server().resume();
      }
      const patient = newStore(patience);
      expect((await readAll(await patient.open('there'))).toString()).toBe('bytes');
      expect(await patient.stat('not/there')).toBeNull();
      await patient.check(60_000);
    });

    it('a server that hangs during a put leaves nothing that a sweep does not find', async () => {
      const source = waitingBody(Buffer.alloc(12 * mib), Buffer.alloc(12 * mib));
      const done = newStore(hesitation).put('hung', source.body);
      await source.waiting;
      server().pause();
      try {
        source.letGo();
        await expect(done).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'timeout' });
      } finally {
        server().resume();
      }
      const patient = newStore(patience);
      expect(await patient.stat('hung')).toBeNull();
      // The server may have read the abort request from its socket meanwhile.
      await patient.sweepUnfinished(-60_000, ['']);
      expect(await patient.sweepUnfinished(-60_000, [''])).toBe(0);
    });

    it('a server that hangs during a read is an error, not an end', async () => {
      const patient = newStore(patience);
      await patient.put('long', chunksOf(randomBytes(40 * mib)));
      const body = await newStore(hesitation).open('long');
      const reading = (async () => {
        for await (const _chunk of body) server().pause();
      })();
      try {
        await expect(reading).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'timeout' });
      } finally {
        server().resume();
      }
    });

    it('a missing bucket is not reported as a missing blob', async () => {
      expect(await callAll(newStore({ ...patience, bucket: 'no-such-bucket' }))).toEqual(allAre('misconfigured'));
    });

    it('rejected credentials are not reported as a missing blob', async () => {
      expect(await callAll(newStore({ ...patience, secretAccessKey: 'another-secret' }))).toEqual(allAre('denied'));
      const denied = newStore({ ...patience, secretAccessKey: 'another-secret' });
      await expect(denied.createBucketIfMissing()).rejects.toMatchObject({ fault: 'denied' });
    });

    it('creates the bucket once for many concurrent calls', async () => {
      const others = Array.from({ length: 5 }, () => newStore({ bucket: 'made-by-many', ...patience }));
      await Promise.all(others.map((other) => other.createBucketIfMissing()));
      await newStore({ bucket: 'made-by-many', ...patience }).createBucketIfMissing();
      for (const other of others) await other.check(60_000);
    });

    it('sweeps only below its own prefix', async () => {
      const mine = newStore({ prefix: 'mine/', ...patience });
      const other = newStore({ prefix: 'other/', ...patience });
      const source = waitingBody(Buffer.alloc(12 * mib));
      const done = other.put('key', source.body);
      await source.waiting;
      expect(await mine.sweepUnfinished(-60_000, [''])).toBe(0);
      source.letGo();
      await done;
      expect((await mine.list('')).blobs).toEqual([]);
      expect((await other.list('')).blobs).toMatchObject([{ key: 'key', storedBytes: 12 * mib }]);
    });

    it('a killed server is reported in time', async () => {
      const patient = newStore(patience);
      await patient.put('long', chunksOf(randomBytes(40 * mib)));
      const body = await patient.open('long');
      const source = waitingBody(Buffer.alloc(12 * mib), Buffer.alloc(12 * mib));
      const done = patient.put('cut', source.body);
      await source.waiting;
      await server().kill();
      source.letGo();
      await expect(done).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'unreachable' });
      await expect(readAll(body)).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'unreachable' });
      expect(await callAll(newStore({ ...patience, maxAttempts: 2 }))).toEqual(allAre('unreachable'));
      await server().restart();
      expect((await readAll(await patient.open('there'))).toString()).toBe('bytes');
      expect(await patient.stat('cut')).toBeNull();
    });
  });
}
