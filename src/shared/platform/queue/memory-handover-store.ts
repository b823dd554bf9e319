import { PayloadTooLargeError } from '../errors/errors.ts';
import { ByteBudget } from './byte-budget.ts';
import { HandoverMissingError, type HandoverOptions, type HandoverStore } from './handover-store.ts';

/** Hand-over within one process: bodies stay in memory, within a budget of `capacityBytes`. */
export class MemoryHandoverStore implements HandoverStore {
  readonly #bodies = new Map<string, { chunks: Buffer[]; bytes: number }>();
  readonly #budget: ByteBudget;
  readonly #capacity: number;

  constructor(capacityBytes: number) {
    this.#capacity = capacityBytes;
    this.#budget = new ByteBudget(capacityBytes);
  }

  async put(key: string, body: AsyncIterable<Buffer>, options: HandoverOptions): Promise<{ bytes: number }> {
    const tooLarge = () =>
      new PayloadTooLargeError(`The body is larger than the ${options.maxBytes} bytes that this server takes`);
    if ((options.declaredBytes ?? 0) > options.maxBytes) throw tooLarge();
    // Room is taken for the whole body at once: bodies that each hold a part and wait for more would block each other.
    let reserved = options.declaredBytes ?? Math.min(options.maxBytes, this.#capacity);
    await this.#budget.take(reserved, { wait: options.wait });
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of body) {
        bytes += chunk.length;
        if (bytes > options.maxBytes) throw tooLarge();
        if (bytes > reserved) {
          this.#budget.add(bytes - reserved);
          reserved = bytes;
        }
        chunks.push(chunk);
      }
    } catch (error) {
      this.#budget.give(reserved);
      throw error;
    }
    // A body of unknown size took room for the largest one.
    if (bytes < reserved) this.#budget.give(reserved - bytes);
    this.#bodies.set(key, { chunks, bytes });
    return { bytes };
  }

  async *open(key: string): AsyncGenerator<Buffer> {
    const body = this.#bodies.get(key);
    if (!body) throw new HandoverMissingError();
    yield* body.chunks;
  }

  async delete(key: string): Promise<void> {
    const body = this.#bodies.get(key);
    if (!body) return;
    this.#bodies.delete(key);
    this.#budget.give(body.bytes);
  }

  async check(): Promise<void> {}

  bytesHeld(): number {
    return this.#budget.used;
  }
}
