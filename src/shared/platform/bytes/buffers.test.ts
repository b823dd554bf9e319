import { gunzipSync, gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { freeBuffer } from './buffers.ts';

test('the memory of a large buffer is freed', () => {
  const body = gunzipSync(gzipSync(Buffer.alloc(200_000, 'a')), { chunkSize: 200_001 });
  const part = body.subarray(100);
  freeBuffer(body);
  expect([body.length, body.buffer.byteLength, part.length]).toEqual([0, 0, 0]);
});

test('memory that is shared with other buffers stays', () => {
  for (const size of [10, 10_000, 30_000, 64 * 1024]) {
    const [neighbor, body] = [Buffer.from('neighbor'), Buffer.allocUnsafe(size).fill('a')];
    freeBuffer(body);
    freeBuffer(gunzipSync(gzipSync(body)));
    expect([neighbor.toString(), body.length, body.at(-1)]).toEqual(['neighbor', size, 97]);
  }
});
