import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bytesOf } from '../bytes/byte-source.ts';
import { InvalidRequestError, PayloadTooLargeError, UnavailableError } from '../errors/errors.ts';
import { BodyBuffer, parsedWeight, rawWeight } from './body-buffer.ts';
import { ByteBudget } from './byte-budget.ts';

const mib = 1024 * 1024;
const heavy = gzipSync(Buffer.alloc(9 * mib, 'x'));
const options = { maxBytes: 16 * mib, weight: parsedWeight, waitMs: 60_000 };

function open(capacity: number, maxBytes = 16 * mib) {
  const budget = new ByteBudget(capacity);
  return { budget, bodies: new BodyBuffer(maxBytes, budget, capacity) };
}

describe('inflating bodies of jobs', () => {
  test('passes on the inflated body and holds its share of the budget until the work is done', async () => {
    const { budget, bodies } = open(64 * mib);
    const isWhole = async (body: Buffer) => {
      expect(budget.used).toBe(27 * mib);
      return body.equals(Buffer.alloc(9 * mib, 'x'));
    };
    expect(await bodies.use(bytesOf(heavy), 'gzip', isWhole)).toBe(true);
    expect(budget.used).toBe(0);
  });

  test('rejects a body above the limit and still accepts the next one', async () => {
    const { budget, bodies } = open(mib, 10 * mib);
    const tooLarge = bytesOf(gzipSync(Buffer.alloc(11 * mib)));
    const work = async (): Promise<string> => 'done';
    await expect(bodies.use(tooLarge, 'gzip', work)).rejects.toThrow(PayloadTooLargeError);
    expect(budget.used).toBe(0);
    expect(await bodies.use(bytesOf(heavy), 'gzip', work)).toBe('done');
  });

  test('processes no more bodies at once than the budget allows, even if work fails, and lets small ones pass', async () => {
    const { budget, bodies } = open(16 * mib);
    const smallBody = Promise.withResolvers<void>();
    const running = { now: 0, max: 0 };
    const hold = async (): Promise<void> => {
      running.max = Math.max(running.max, ++running.now);
      await smallBody.promise;
      await setImmediate();
      running.now--;
      throw new TypeError('no use');
    };
    const held = [1, 2, 3].map(() =>
      bodies.use(bytesOf(Buffer.alloc(5 * mib), Buffer.alloc(5 * mib)), 'identity', hold),
    );
    const rejections = Promise.all(held.map((each) => expect(each).rejects.toThrow(TypeError)));
    for (let round = 0; round < 20; round++) await setImmediate();
    await bodies.use(bytesOf(Buffer.alloc(64 * 1024)), 'identity', async () => smallBody.resolve());
    await rejections;
    expect(running).toEqual({ now: 0, max: 1 });
    expect(budget.used).toBe(0);
  });

  test('completes any mix of bodies within the budget', async () => {
    const size = fc.integer({ min: 0, max: 3 * mib });
    await fc.assert(
      fc.asyncProperty(fc.array(size, { minLength: 1, maxLength: 8 }), async (sizes) => {
        const { budget, bodies } = open(4 * mib, 4 * mib);
        let maxUsed = 0;
        const lengths = await Promise.all(
          sizes.map((bytes, index) => {
            const use = async (body: Buffer): Promise<number> => {
              maxUsed = Math.max(maxUsed, budget.used);
              await setImmediate();
              return body.length;
            };
            const body = Buffer.alloc(bytes, 'x');
            if (index % 2 === 0) return bodies.use(bytesOf(gzipSync(body)), 'gzip', use);
            return bodies.inflate(gzipSync(body), 'gzip', { ...options, maxBytes: 4 * mib }).then(async (inflated) => {
              const length = await use(inflated.body);
              inflated.release();
              return length;
            });
          }),
        );
        expect(lengths).toEqual(sizes);
        expect(budget.used).toBe(0);
        expect(maxUsed).toBeLessThanOrEqual(Math.max(4 * mib, 3 * Math.max(...sizes)));
      }),
      { numRuns: 10 },
    );
  });
});

describe('inflating a body that is in memory', () => {
  test('acquires the size that the gzip claims, times the weight, before it inflates', async () => {
    const { budget, bodies } = open(64 * mib);
    for (const [weight, share] of [[parsedWeight, 27 * mib] as const, [rawWeight, 9 * mib] as const]) {
      const { body, release } = await bodies.inflate(heavy, 'gzip', { ...options, weight });
      expect([body.length, budget.used]).toEqual([9 * mib, share]);
      release();
      release();
      expect(budget.used).toBe(0);
    }
    expect(budget.peak).toBe(27 * mib);
  });

  test('charges the actual size when the gzip claims too little', async () => {
    const { budget, bodies } = open(64 * mib);
    const twoMembers = Buffer.concat([heavy, gzipSync('x')]);
    const { body, release } = await bodies.inflate(twoMembers, 'gzip', { ...options, weight: rawWeight });
    expect([body.length, budget.used, budget.peak]).toEqual([9 * mib + 1, 9 * mib + 1, 9 * mib + 1]);
    release();
  });

  test.each([
    ['not gzip', Buffer.alloc(200_000, 'x'), 'gzip', InvalidRequestError],
    ['gzip of a body that is too large', gzipSync(Buffer.alloc(17 * mib)), 'gzip', PayloadTooLargeError],
    ['too large', Buffer.alloc(17 * mib), 'identity', PayloadTooLargeError],
  ] as const)('releases its share of the budget when the body is %s', async (_label, body, encoding, error) => {
    const { budget, bodies } = open(mib);
    await expect(bodies.inflate(body, encoding, options)).rejects.toThrow(error);
    expect(budget.used).toBe(0);
  });

  test('waits in order and only up to its time limit, while small bodies pass', async () => {
    const { budget, bodies } = open(mib);
    const first = await bodies.inflate(heavy, 'gzip', options);
    const impatient = bodies.inflate(heavy, 'gzip', { ...options, waitMs: 20 });
    const second = bodies.inflate(heavy, 'gzip', options);
    await expect(impatient).rejects.toThrow(UnavailableError);
    const small = await bodies.inflate(gzipSync(Buffer.alloc(64 * 1024)), 'gzip', { ...options, waitMs: 20 });
    expect([small.body.length, budget.used]).toEqual([64 * 1024, 27 * mib]);
    first.release();
    (await second).release();
    expect(budget).toMatchObject({ used: 0, peak: 27 * mib });
  });
});
