import { createHash } from 'node:crypto';
import type { DocumentDigest } from './document-codec.ts';

/** Called with the hash once a document has been read completely; may throw to reject it. */
export type Verify = (sha256: Buffer) => void | Promise<void>;

/** The text of a document that is read once and hashed on the way. */
export class HashedText {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #verify: Verify | undefined;
  readonly #hash = createHash('sha256');
  #sizeBytes = 0;
  #digest: (DocumentDigest & { sha256: Buffer }) | null = null;

  constructor(source: AsyncIterable<Buffer>, verify: Verify | undefined) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#verify = verify;
  }

  /** Hash and size; null until the text has been read completely and was verified. */
  get digest(): (DocumentDigest & { readonly sha256: Buffer }) | null {
    return this.#digest;
  }

  /** Reads until there are more than `limitBytes`, or to the end. */
  async readHead(limitBytes: number): Promise<Buffer[]> {
    const head: Buffer[] = [];
    while (this.#sizeBytes <= limitBytes) {
      const chunk = await this.#next();
      if (!chunk) break;
      head.push(chunk);
    }
    return head;
  }

  /** The whole text, of which `head` was read already. It ends only if the text was verified. */
  async *from(head: readonly Buffer[]): AsyncGenerator<Buffer> {
    yield* head;
    for (let chunk = await this.#next(); chunk; chunk = await this.#next()) yield chunk;
  }

  /** Call when no more will be read. */
  close(): void {
    // Not awaited: a source that waits for its own source returns only after that.
    if (!this.#digest) this.#chunks.return?.()?.catch(() => undefined);
  }

  async #next(): Promise<Buffer | null> {
    const { done, value } = await this.#chunks.next();
    if (done !== true) {
      this.#hash.update(value);
      this.#sizeBytes += value.length;
      return value;
    }
    const sha256 = this.#hash.digest();
    await this.#verify?.(sha256);
    this.#digest = { sha256, sizeBytes: this.#sizeBytes };
    return null;
  }
}
