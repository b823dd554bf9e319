import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { PayloadTooLargeError } from '../platform/errors/errors.ts';
import { bytesOf } from './byte-source.ts';
import { WholeBodies } from './whole-bodies.ts';

const mib = 1024 * 1024;
const heavy = bytesOf(gzipSync(Buffer.alloc(9 * mib, 'x')));
const light = bytesOf(Buffer.alloc(mib, 'y'));

describe('WholeBodies', () => {
  test('gives the inflated body', async () => {
    const bodies = new WholeBodies(16 * mib);
    const isWhole = async (body: Buffer) => body.equals(Buffer.alloc(9 * mib, 'x'));
    expect(await bodies.use(heavy, 'gzip', isWhole)).toBe(true);
  });

  test('refuses a body above its limit, and goes on', async () => {
    const bodies = new WholeBodies(10 * mib);
    const tooLarge = bytesOf(gzipSync(Buffer.alloc(11 * mib)));
    const work = async (): Promise<string> => 'done';
    await expect(bodies.use(tooLarge, 'gzip', work)).rejects.toThrow(PayloadTooLargeError);
    expect(await bodies.use(heavy, 'gzip', work)).toBe('done');
  });

  test('has one heavy body at a time in hand, also when work on it fails, and light ones beside it', async () => {
    const bodies = new WholeBodies(16 * mib);
    const inHand = { heavy: 0, most: 0 };
    const beside = Promise.withResolvers<void>();
    const hold = async (): Promise<void> => {
      inHand.most = Math.max(inHand.most, ++inHand.heavy);
      await beside.promise;
      await setImmediate();
      inHand.heavy--;
      throw new TypeError('no use');
    };
    // In memory and not encoded: a body that waits for nobody is in hand after a few turns of the event loop.
    const atHand = bytesOf(Buffer.alloc(5 * mib), Buffer.alloc(5 * mib));
    const held = [1, 2, 3].map(() => bodies.use(atHand, 'identity', hold));
    const refusals = Promise.all(held.map((each) => expect(each).rejects.toThrow(TypeError)));
    for (let turn = 0; turn < 20; turn++) await setImmediate();
    await bodies.use(light, 'identity', async () => beside.resolve());
    await refusals;
    expect(inHand).toEqual({ heavy: 0, most: 1 });
  });
});
