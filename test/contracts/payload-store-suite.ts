import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { PayloadTooLargeError, UnavailableError } from '../../src/shared/platform/errors/errors.ts';
import {
  type BudgetName,
  type BudgetTimes,
  maxWaitingPerKey,
} from '../../src/shared/platform/payloads/in-flight-rules.ts';
import {
  BudgetExhaustedError,
  PayloadMissingError,
  type PayloadStore,
} from '../../src/shared/platform/payloads/payload-store.ts';
import { until } from '../support/until.ts';
import { chunksOf, failingBody, mib, readAll, waitingBody } from './blob-store-suite.ts';

/** An empty store with `capacityBytes` in each budget. */
export type OpenPayloadStore = (capacityBytes: number, times?: Partial<BudgetTimes>) => Promise<PayloadStore>;

const generous = { maxBytes: 64 * mib, declaredBytes: null, budget: 'writes' } as const;

interface PutOptions {
  readonly budget?: BudgetName;
  readonly declaredBytes?: number | null;
  readonly key?: string;
  readonly fairnessKey?: string;
  readonly keyLimit?: number | null;
  readonly gone?: AbortSignal;
}

/** The bytes that the store currently counts as held. */
export async function held(store: PayloadStore): Promise<number> {
  await store.check(60_000);
  return store.bytesHeld();
}

/** Whether the promise is still pending after everything else had its turn. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const later = new Promise((resolve) => setTimeout(() => resolve(pending), 300));
  return (await Promise.race([promise.catch(() => {}), later])) === pending;
}

/** The behavior that every PayloadStore shares. */
export function describePayloadStore(name: string, open: OpenPayloadStore): void {
  describe(`payload store in ${name}`, () => {
    let store: PayloadStore;
    let key: string;
    beforeEach(async () => {
      store = await open(64 * mib);
      key = randomUUID();
    });
    afterEach(async () => {
      await store.delete(key);
      expect(await held(store)).toBe(0);
    });

    it('knows how much the bodies of each key hold, in each budget', async () => {
      const other = randomUUID();
      await store.put(key, chunksOf(randomBytes(1_000)), { ...generous, fairnessKey: 'blue' });
      await store.put(other, chunksOf(randomBytes(500)), { ...generous, fairnessKey: 'red', budget: 'imports' });
      expect([...(await store.heldByKey('writes'))]).toEqual([['blue', 1_000]]);
      expect([...(await store.heldByKey('imports'))]).toEqual([['red', 500]]);
      await store.delete(other);
      expect([...(await store.heldByKey('imports'))]).toEqual([]);
    });

    it.each([
      ['nothing', 0],
      ['one byte', 1],
      ['20 MB', 20_000_003],
    ])('returns %s unchanged, as often as requested', async (_label, size) => {
      const bytes = randomBytes(size);
      for (const declaredBytes of [size, null]) {
        const { bytes: taken, encryption } = await store.put(key, chunksOf(bytes), { ...generous, declaredBytes });
        expect(taken).toBe(size);
        for (let time = 0; time < 2; time++)
          expect((await readAll(store.open(key, encryption))).equals(bytes)).toBe(true);
        expect(await held(store)).toBe(size);
        await store.delete(key);
      }
    });

    it('can be read by many at once, and reads can stop halfway', async () => {
      const bytes = randomBytes(3 * mib);
      const { encryption } = await store.put(key, chunksOf(bytes), generous);
      for await (const _chunk of store.open(key, encryption)) break;
      const read = await Promise.all([store.open(key, encryption), store.open(key, encryption)].map(readAll));
      expect(read.every((one) => one.equals(bytes))).toBe(true);
    });

    it.each([
      ['declares too much', { declaredBytes: 5_000_001 }],
      ['turns out too large', { declaredBytes: null }],
    ])('keeps nothing of a body that %s', async (_label, size) => {
      const put = store.put(key, chunksOf(randomBytes(5_000_001)), { maxBytes: 5_000_000, budget: 'writes', ...size });
      await expect(put).rejects.toThrow(PayloadTooLargeError);
      expect(await held(store)).toBe(0);
      await expect(readAll(store.open(key, null))).rejects.toThrow(PayloadMissingError);
    });

    it('accepts a body of exactly the maximum size', async () => {
      for (const declaredBytes of [5_000_000, null]) {
        await store.put(key, chunksOf(randomBytes(5_000_000)), {
          maxBytes: 5_000_000,
          declaredBytes,
          budget: 'writes',
        });
        await store.delete(key);
      }
    });

    it.each([
      ['at once', 0],
      ['in the middle', 3 * mib],
    ])('keeps nothing of a body that breaks off %s, and reports why', async (_label, size) => {
      const reason = new Error('the client is gone');
      for (const declaredBytes of [10 * mib, null]) {
        const put = store.put(key, failingBody(randomBytes(size), reason), { ...generous, declaredBytes });
        await expect(put).rejects.toBe(reason);
        expect(await held(store)).toBe(0);
        await expect(readAll(store.open(key, null))).rejects.toThrow(PayloadMissingError);
      }
    });

    it('deletes existing and missing bodies, and releases the budget once', async () => {
      const { encryption } = await store.put(key, chunksOf(randomBytes(mib)), generous);
      await Promise.all([store.delete(key), store.delete(key)]);
      await store.delete(key);
      await store.delete(randomUUID());
      expect(await held(store)).toBe(0);
      await expect(readAll(store.open(key, encryption))).rejects.toThrow(PayloadMissingError);
    });

    it('reports a body that was never stored as missing, as a retryable error', async () => {
      const error: unknown = await readAll(store.open(randomUUID(), null)).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(PayloadMissingError);
      expect(error).toMatchObject({ status: 503, retryAfterSeconds: 1 });
    });

    it('responds to a health check', async () => {
      await store.check(60_000);
    });

    describe('with a budget of 4 MiB', () => {
      const small = { maxBytes: 64 * mib };
      let keys: string[];
      const put = (size: number, options: PutOptions = {}) => {
        const name = options.key ?? randomUUID();
        const declaredBytes = options.declaredBytes === undefined ? size : options.declaredBytes;
        return putBody(name, chunksOf(randomBytes(size)), declaredBytes, options);
      };
      const putBody = (
        name: string,
        body: AsyncIterable<Buffer>,
        declared: number | null,
        { budget = 'writes', fairnessKey = 'one', keyLimit = null, gone }: PutOptions = {},
      ) => {
        keys.push(name);
        const options = { ...small, declaredBytes: declared, budget, fairnessKey, keyLimit };
        return store.put(name, body, gone ? { ...options, gone } : options);
      };
      const reopen = async (times: Partial<BudgetTimes>): Promise<void> => {
        store = await open(4 * mib, times);
      };
      beforeEach(async () => {
        await reopen({});
        keys = [];
      });
      afterEach(async () => {
        for (const one of keys) await store.delete(one);
      });

      it('rejects bodies that do not fit, and accepts them when they do', async () => {
        await put(3 * mib, { key });
        const refused = put(2 * mib);
        await expect(refused).rejects.toThrow(UnavailableError);
        await expect(refused).rejects.toMatchObject({ status: 503, retryAfterSeconds: 1 });
        await put(mib, { fairnessKey: 'other' });
        await store.delete(key);
        await put(2 * mib);
      });

      it('does not read a byte of a body that it rejects', async () => {
        await put(3 * mib, { key });
        const body = chunksOf(randomBytes(2 * mib));
        await expect(putBody(randomUUID(), body, 2 * mib)).rejects.toThrow(UnavailableError);
        expect(await body.next()).toMatchObject({ done: false });
      });

      it('lets imports wait, because they must not be rejected', async () => {
        await put(3 * mib, { key, budget: 'imports' });
        const waiting = put(2 * mib, { budget: 'imports' });
        expect(await isPending(waiting)).toBe(true);
        await store.delete(key);
        expect(await waiting).toMatchObject({ bytes: 2 * mib });
      });

      it('lets nobody wait whose client has left, nor others because of it', async () => {
        await put(2 * mib, { key, budget: 'imports' });
        const client = new AbortController();
        const left = put(3 * mib, { budget: 'imports', fairnessKey: 'other', gone: client.signal });
        expect(await isPending(left)).toBe(true);
        const next = put(mib, { budget: 'imports', fairnessKey: 'third' });
        expect(await isPending(next)).toBe(true);
        const reason = new Error('the client has left');
        client.abort(reason);
        await expect(left).rejects.toBe(reason);
        expect(await next).toMatchObject({ bytes: mib });
        await expect(put(mib, { budget: 'imports', gone: client.signal })).rejects.toBe(reason);
        expect(await held(store)).toBe(3 * mib);
      });

      it('lets only so many of a key wait, and refuses others at once', async () => {
        await put(4 * mib, { key, budget: 'imports' });
        const waiting = Array.from({ length: maxWaitingPerKey }, () => put(1000, { budget: 'imports' }));
        const all = Promise.all(waiting);
        expect(await isPending(all)).toBe(true);
        await expect(put(1000, { budget: 'imports' })).rejects.toThrow(BudgetExhaustedError);
        const other = put(1000, { budget: 'imports', fairnessKey: 'other' });
        expect(await isPending(other)).toBe(true);
        await store.delete(key);
        await Promise.all([all, other]);
        await put(1000, { budget: 'imports' });
      });

      it('keeps imports and other writes independent of each other', async () => {
        await put(4 * mib, { key, budget: 'imports' });
        const other = randomUUID();
        await put(4 * mib, { key: other });
        expect(await held(store)).toBe(8 * mib);
        await store.delete(other);
        await put(4 * mib);
      });

      it.each(['writes', 'imports'] as const)(
        'counts the received bytes of %s, not the declared ones',
        async (budget) => {
          const slow = waitingBody(randomBytes(1000), randomBytes(4 * mib - 1000));
          const done = putBody(key, slow.body, 4 * mib, { budget });
          await slow.waiting;
          for (let time = 0; time < 3; time++) {
            const name = randomUUID();
            await put(3 * mib, { key: name, budget, fairnessKey: 'other' });
            await store.delete(name);
          }
          slow.letGo();
          expect(await done).toMatchObject({ bytes: 4 * mib });
        },
      );

      it('completes imports that arrived halfway at the same time, and holds no more than its limit', async () => {
        const sizes = [3 * mib, 2 * mib, 4 * mib, 3 * mib, mib, 4 * mib, 2 * mib];
        let most = 0;
        const watch = setInterval(
          () =>
            void held(store).then((bytes) => {
              most = Math.max(most, bytes);
            }),
          5,
        );
        await Promise.all(
          sizes.map(async (size) => {
            const name = randomUUID();
            await put(size, { key: name, budget: 'imports' });
            await store.delete(name);
          }),
        ).finally(() => clearInterval(watch));
        expect(await held(store)).toBe(0);
        expect(most).toBeLessThanOrEqual(4 * mib);
      });

      it('completes the oldest body: a younger one that stalls gives way', async () => {
        await reopen({ patience: { withYielding: 300, withOthers: 300 } });
        for (const budget of ['writes', 'imports'] as const) {
          const [one, other] = [
            waitingBody(randomBytes(mib), randomBytes(2 * mib)),
            waitingBody(randomBytes(1.5 * mib)),
          ];
          const old = putBody(randomUUID(), one.body, null, { budget });
          await one.waiting;
          const young = putBody(randomUUID(), other.body, null, { budget });
          await other.waiting;
          const refused = expect(young).rejects.toMatchObject({ name: 'ReservationLostError', status: 503 });
          one.letGo();
          expect(await old).toMatchObject({ bytes: 3 * mib });
          await refused;
        }
      });

      it('drops a body that has waited half received for too long', async () => {
        await reopen({ yieldingWaitMs: 300 });
        await put(3 * mib, { key });
        await expect(put(2 * mib, { declaredBytes: null })).rejects.toMatchObject({
          name: 'BudgetExhaustedError',
          status: 503,
        });
        expect(await held(store)).toBe(3 * mib);
      });

      it('ends the wait of an import that finds no budget', async () => {
        await reopen({ waitMs: 300 });
        await put(3 * mib, { key, budget: 'imports' });
        await expect(put(2 * mib, { budget: 'imports' })).rejects.toMatchObject({
          name: 'BudgetExhaustedError',
          status: 503,
        });
        await put(mib, { budget: 'imports', fairnessKey: 'other' });
      });

      it('counts every byte of a body of unknown size that exceeds the capacity', async () => {
        await put(5 * mib + 7, { key, declaredBytes: null });
        expect(await held(store)).toBe(5 * mib + 7);
      });

      it('accepts a body that exceeds the capacity, alone', async () => {
        await put(6 * mib, { key, budget: 'imports' });
        const waiting = put(6 * mib, { budget: 'imports' });
        expect(await isPending(waiting)).toBe(true);
        await store.delete(key);
        await waiting;
        await put(6 * mib);
        await expect(put(1)).rejects.toThrow(UnavailableError);
      });

      it('lets several large bodies that wait for each other through, one by one', async () => {
        const names = Array.from({ length: 5 }, () => randomUUID());
        const sizes = [3 * mib, 6 * mib, 4 * mib, 5 * mib, 3 * mib];
        await Promise.all(
          names.map(async (name, index) => {
            await put(sizes[index] as number, { budget: 'imports', key: name });
            await store.delete(name);
          }),
        );
        expect(await held(store)).toBe(0);
      });

      it('leaves budget for another key, however much one key sends', async () => {
        const names = Array.from({ length: 8 }, () => randomUUID());
        const outcomes = await Promise.allSettled(names.map((name) => put(mib / 2, { key: name })));
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(6);
        expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { status: 503 } });
        await put(mib / 2, { fairnessKey: 'other' });
        await expect(put(mib / 2)).rejects.toMatchObject({ name: 'BudgetExhaustedError' });
      });

      it('drops bodies of the largest key for another one, the youngest first', async () => {
        await reopen({ patience: { withYielding: 300, withOthers: 300 } });
        for (const budget of ['writes', 'imports'] as const) {
          const bodies = [1, 2, 3].map(() => waitingBody(randomBytes(0.75 * mib), randomBytes(mib / 4)));
          const puts = [];
          for (const { body, waiting } of bodies) {
            puts.push(putBody(randomUUID(), body, mib, { budget }));
            await waiting;
          }
          const lost = expect(puts[2]).rejects.toMatchObject({ name: 'ReservationLostError', status: 503 });
          const other = randomUUID();
          await put(1.25 * mib, { budget, fairnessKey: 'other', key: other });
          await lost;
          for (const each of bodies) each.letGo();
          expect(await Promise.all(puts.slice(0, 2))).toMatchObject([{ bytes: mib }, { bytes: mib }]);
          for (const one of [...keys.splice(0)]) await store.delete(one);
        }
      });

      it('drops a stalled body first, regardless of other bodies being received', async () => {
        await reopen({ stallMs: { withYielding: 300, withOthers: 300 } });
        for (const budget of ['writes', 'imports'] as const) {
          const [silent, young] = [
            waitingBody(randomBytes(2.5 * mib), randomBytes(100)),
            waitingBody(randomBytes(mib / 4), randomBytes(100)),
          ];
          const lost = expect(
            putBody(randomUUID(), silent.body, 2.5 * mib + 100, { budget, fairnessKey: 'other' }),
          ).rejects.toMatchObject({ name: 'ReservationLostError', status: 503 });
          await silent.waiting;
          const staying = putBody(randomUUID(), young.body, mib / 4 + 100, { budget, fairnessKey: 'third' });
          await young.waiting;
          // The youngest has stalled, too, and has less.
          await put(mib, { budget });
          await put(mib / 3, { budget });
          await lost;
          silent.letGo();
          young.letGo();
          expect(await staying).toMatchObject({ bytes: mib / 4 + 100 });
          for (const one of [...keys.splice(0)]) await store.delete(one);
        }
      });

      it('makes the bodies of a key wait for each other at its own limit, and no other key', async () => {
        await reopen({ yieldingWaitMs: 500 });
        const limited = { keyLimit: mib, fairnessKey: 'limited' };
        await put(mib, { key, ...limited });
        await put(mib, { fairnessKey: 'other' });
        await expect(put(mib / 2, limited)).rejects.toMatchObject({ name: 'BudgetExhaustedError', isKeyLimit: true });
        await store.delete(key);
        await put(2 * mib, limited);
      });

      it('gives the budget of an aborted body to waiting bodies', async () => {
        const gate = Promise.withResolvers<void>();
        async function* breaking(): AsyncGenerator<Buffer> {
          yield randomBytes(2 * mib);
          await gate.promise;
          throw new Error('gone');
        }
        const broken = putBody(key, breaking(), 4 * mib, { budget: 'imports' });
        await until(async () => (await held(store)) >= 2 * mib, 'half in');
        const waiting = put(4 * mib, { budget: 'imports' });
        expect(await isPending(waiting)).toBe(true);
        gate.resolve();
        await expect(broken).rejects.toThrow('gone');
        await waiting;
      });
    });
  });
}
