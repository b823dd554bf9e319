import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayloadTooLargeError, UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import { HandoverMissingError, type HandoverStore } from '../../src/shared/platform/queue/handover-store.ts';
import { chunksOf, failingBody, mib, readAll, waitingBody } from './blob-store-suite.ts';

/** A store with room for `capacityBytes`, and nothing in it. */
export type OpenHandoverStore = (capacityBytes: number) => Promise<HandoverStore>;

const generous = { maxBytes: 64 * mib, declaredBytes: null, wait: false };

/** The bytes that the store counts as held, as of now. */
export async function held(store: HandoverStore): Promise<number> {
  await store.check(2_000);
  return store.bytesHeld();
}

/** Whether the promise is still pending after everything else had its turn. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const later = new Promise((resolve) => setTimeout(() => resolve(pending), 300));
  return (await Promise.race([promise.catch(() => {}), later])) === pending;
}

/** The behaviour that every HandoverStore shares. */
export function describeHandoverStore(name: string, open: OpenHandoverStore): void {
  describe(`hand-over through ${name}`, () => {
    let store: HandoverStore;
    let key: string;
    beforeEach(async () => {
      store = await open(64 * mib);
      key = randomUUID();
    });
    afterEach(async () => {
      await store.delete(key);
      expect(await held(store)).toBe(0);
    });

    it.each([
      ['nothing', 0],
      ['one byte', 1],
      ['20 MB', 20_000_003],
    ])(
      'gives back %s as it came, as often as asked',
      async (_label, size) => {
        const bytes = randomBytes(size);
        for (const declaredBytes of [size, null]) {
          expect(await store.put(key, chunksOf(bytes), { ...generous, declaredBytes })).toEqual({ bytes: size });
          for (let time = 0; time < 2; time++) expect((await readAll(store.open(key))).equals(bytes)).toBe(true);
          expect(await held(store)).toBe(size);
          await store.delete(key);
        }
      },
      30_000,
    );

    it('can be read by many at once, and left half-way', async () => {
      const bytes = randomBytes(3 * mib);
      await store.put(key, chunksOf(bytes), generous);
      for await (const _chunk of store.open(key)) break;
      const read = await Promise.all([store.open(key), store.open(key)].map(readAll));
      expect(read.every((one) => one.equals(bytes))).toBe(true);
    });

    it.each([
      ['declares too much', { declaredBytes: 5_000_001 }],
      ['turns out too large', { declaredBytes: null }],
    ])('keeps nothing of a body that %s', async (_label, size) => {
      const put = store.put(key, chunksOf(randomBytes(5_000_001)), { maxBytes: 5_000_000, wait: false, ...size });
      await expect(put).rejects.toThrow(PayloadTooLargeError);
      expect(await held(store)).toBe(0);
      await expect(readAll(store.open(key))).rejects.toThrow(HandoverMissingError);
    });

    it('takes a body that is just as large as it may be', async () => {
      for (const declaredBytes of [5_000_000, null]) {
        await store.put(key, chunksOf(randomBytes(5_000_000)), { maxBytes: 5_000_000, declaredBytes, wait: false });
        await store.delete(key);
      }
    });

    it.each([
      ['at once', 0],
      ['in the middle', 3 * mib],
    ])('keeps nothing of a body that breaks off %s, and says why', async (_label, size) => {
      const reason = new Error('the client is gone');
      for (const declaredBytes of [10 * mib, null]) {
        const put = store.put(key, failingBody(randomBytes(size), reason), { ...generous, declaredBytes });
        await expect(put).rejects.toBe(reason);
        expect(await held(store)).toBe(0);
        await expect(readAll(store.open(key))).rejects.toThrow(HandoverMissingError);
      }
    });

    it('deletes, also what is not there, and gives the room back once', async () => {
      await store.put(key, chunksOf(randomBytes(mib)), generous);
      await Promise.all([store.delete(key), store.delete(key)]);
      await store.delete(key);
      await store.delete(randomUUID());
      expect(await held(store)).toBe(0);
      await expect(readAll(store.open(key))).rejects.toThrow(HandoverMissingError);
    });

    it('says of a body that was never there that it is missing, as a fault to repeat the call for', async () => {
      const error: unknown = await readAll(store.open(randomUUID())).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(HandoverMissingError);
      expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1 });
    });

    it('answers that it is there', async () => {
      await store.check(1_000);
    });

    describe('with room for 4 MiB', () => {
      const small = { maxBytes: 64 * mib, wait: false };
      let keys: string[];
      const put = (size: number, options: { wait?: boolean; declaredBytes?: number | null; key?: string } = {}) => {
        const name = options.key ?? randomUUID();
        keys.push(name);
        const declaredBytes = options.declaredBytes === undefined ? size : options.declaredBytes;
        const body = chunksOf(randomBytes(size));
        return store.put(name, body, { ...small, declaredBytes, wait: options.wait === true });
      };
      beforeEach(async () => {
        store = await open(4 * mib);
        keys = [];
      });
      afterEach(async () => {
        for (const one of keys) await store.delete(one);
      });

      it('refuses whom it has no room for, and takes them when there is', async () => {
        await put(3 * mib, { key });
        const refused = put(2 * mib);
        await expect(refused).rejects.toThrow(UnavailableError);
        await expect(refused).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 });
        await put(mib);
        await store.delete(key);
        await put(2 * mib);
      });

      it('does not read a byte of a body that it refuses', async () => {
        await put(3 * mib, { key });
        const body = chunksOf(randomBytes(2 * mib));
        await expect(store.put(randomUUID(), body, { ...small, declaredBytes: 2 * mib })).rejects.toThrow();
        expect(await body.next()).toMatchObject({ done: false });
      });

      it('lets those wait who must not be refused', async () => {
        await put(3 * mib, { key });
        const waiting = put(2 * mib, { wait: true });
        expect(await isPending(waiting)).toBe(true);
        await store.delete(key);
        expect(await waiting).toEqual({ bytes: 2 * mib });
      });

      it('counts all of a body of unknown size that is larger than itself', async () => {
        await put(5 * mib + 7, { key, declaredBytes: null });
        expect(await held(store)).toBe(5 * mib + 7);
      });

      it('takes a body larger than itself, alone', async () => {
        await put(6 * mib, { key });
        await expect(put(1)).rejects.toThrow(UnavailableError);
        const waiting = put(6 * mib, { wait: true });
        expect(await isPending(waiting)).toBe(true);
        await store.delete(key);
        await waiting;
      });

      it('lets several large bodies that wait for each other through, one by one', async () => {
        const names = Array.from({ length: 5 }, () => randomUUID());
        const sizes = [3 * mib, 6 * mib, 4 * mib, 5 * mib, 3 * mib];
        await Promise.all(
          names.map(async (name, index) => {
            await put(sizes[index] as number, { wait: true, key: name });
            await store.delete(name);
          }),
        );
        expect(await held(store)).toBe(0);
      });

      it('gives back what a body of unknown size did not need', async () => {
        const source = waitingBody(randomBytes(mib));
        keys.push(key);
        const done = store.put(key, source.body, { ...small, declaredBytes: null });
        await source.waiting;
        // It might become as large as the store.
        await expect(put(mib)).rejects.toThrow(UnavailableError);
        source.letGo();
        await done;
        expect(await held(store)).toBe(mib);
        await put(3 * mib);
      });

      it('gives the room of a body that broke off to whoever waits', async () => {
        const gate = Promise.withResolvers<void>();
        async function* breaking(): AsyncGenerator<Buffer> {
          yield randomBytes(mib);
          await gate.promise;
          throw new Error('gone');
        }
        const broken = store.put(key, breaking(), { ...small, declaredBytes: 4 * mib });
        const waiting = put(4 * mib, { wait: true });
        expect(await isPending(waiting)).toBe(true);
        gate.resolve();
        await expect(broken).rejects.toThrow('gone');
        await waiting;
      });
    });
  });
}
