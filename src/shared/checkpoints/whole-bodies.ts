import { ByteBudget } from '../platform/queue/byte-budget.ts';
import { type BodyEncoding, type ByteSource, inflate } from './byte-source.ts';

/** Bodies above this, inflated, are held one at a time: each takes about three times its size until it is committed. */
const heavyBytes = 8 * 1024 * 1024;

/** Inflates bodies that are taken apart in memory: batches of journal entries and events, and deltas. */
export class WholeBodies {
  readonly #maxBytes: number;
  readonly #heavy = new ByteBudget(heavyBytes);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * What `work` makes of the inflated body; heavy ones wait for each other, in order, until the work is done. Throws
   * PayloadTooLargeError, upon which the CLI halves a batch of entries and sends the whole checkpoint instead of a delta, and
   * InvalidRequestError.
   */
  async use<T>(source: ByteSource, encoding: BodyEncoding, work: (body: Buffer) => Promise<T>): Promise<T> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isHeavy = false;
    try {
      for await (const chunk of inflate(source, encoding, this.#maxBytes)) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (isHeavy || bytes <= heavyBytes) continue;
        await this.#heavy.take(heavyBytes, { wait: true });
        isHeavy = true;
      }
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      chunks.length = 0;
      return await work(body);
    } finally {
      if (isHeavy) this.#heavy.give(heavyBytes);
    }
  }
}
