import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Static, Type } from 'typebox';
import type { BlobStore, PutOptions } from '../platform/blobs/blob-store.ts';
import { BytePace } from '../platform/slices/byte-pace.ts';

export const StoredObject = Type.Object({
  key: Type.String(),
  bytes: Type.Integer({ minimum: 0 }),
  /** In hex, lower case. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type StoredObject = Static<typeof StoredObject>;

export async function store(
  target: BlobStore,
  key: string,
  body: AsyncIterable<Buffer>,
  options: PutOptions = {},
): Promise<StoredObject> {
  const meter = new Meter();
  await target.put(key, meter.pass(body), options);
  return { key, bytes: meter.bytes, sha256: meter.sha256 };
}

export async function isIntact(target: BlobStore, { bytes, key, sha256 }: StoredObject): Promise<boolean> {
  const meter = new Meter();
  for await (const _ of meter.pass(await target.open(key)));
  return meter.bytes === bytes && meter.sha256 === sha256;
}

/** For objects of a few MiB. */
export async function readSmall(target: BlobStore, key: string): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(await target.open(key)));
}

export class Meter {
  readonly #hash = createHash('sha256');
  bytes = 0;

  async *pass(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.bytes += chunk.length;
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** Read it once, after all bytes. */
  get sha256(): string {
    return this.#hash.digest('hex');
  }
}

/** One limit for all passing bodies. */
export class BodyPace {
  readonly #pace: BytePace;

  constructor(bytesPerSecond = Number.POSITIVE_INFINITY) {
    this.#pace = new BytePace(bytesPerSecond);
  }

  async *pass(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of body) {
      this.#pace.spend(chunk.length);
      const { waitMs } = this.#pace;
      if (waitMs > 0) await sleep(waitMs);
      yield chunk;
    }
  }
}
