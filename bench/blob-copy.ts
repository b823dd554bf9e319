import { copyManyBlobs } from './support/many-blobs.ts';

/**
 * Copies of 10,000, 100,000 and 1,000,000 simulated blobs to another place: calls per blob, and the largest heap.
 *
 *     npm run bench blob-copy
 */
await copyManyBlobs(10_000);
for (const count of [10_000, 100_000, 1_000_000]) {
  const { calls, copied, heapBytes } = await copyManyBlobs(count);
  const sum = Object.values(calls).reduce((total, each) => total + each, 0);
  console.log(
    `${count.toLocaleString('en')} blobs, ${copied.toLocaleString('en')} copied: ${(sum / count).toFixed(3)} calls each, ` +
      `heap ${(heapBytes / 2 ** 20).toFixed(1)} MiB`,
  );
}
