import {
  BlobNotFoundError,
  type BlobPage,
  type BlobRange,
  type BlobStat,
  type BlobStore,
  BlobStoreUnavailableError,
} from '../../src/shared/platform/blobs/blob-store.ts';

/** Listed in an order of choice; they can be away. */
export class MemoryBlobs implements BlobStore {
  readonly blobs = new Map<string, Buffer>();
  isAway = false;
  readonly #compare: (one: string, two: string) => number;
  readonly #pageSize: number;

  constructor({
    compare = (one, two) => (one < two ? -1 : one > two ? 1 : 0),
    pageSize = 2,
  }: { compare?: (one: string, two: string) => number; pageSize?: number } = {}) {
    this.#compare = compare;
    this.#pageSize = pageSize;
  }

  async put(key: string, body: AsyncIterable<Buffer>): Promise<{ storedBytes: number }> {
    const bytes = Buffer.concat(await Array.fromAsync(body));
    this.#assertThere();
    this.blobs.set(key, bytes);
    return { storedBytes: bytes.length };
  }

  async open(key: string, { range }: { range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    this.#assertThere();
    const bytes = this.blobs.get(key);
    if (!bytes) throw new BlobNotFoundError(key);
    return (async function* () {
      yield range ? bytes.subarray(range.start, range.end) : bytes;
    })();
  }

  async stat(key: string): Promise<BlobStat | null> {
    this.#assertThere();
    const bytes = this.blobs.get(key);
    return bytes ? { storedBytes: bytes.length, modifiedAt: new Date(0) } : null;
  }

  async delete(key: string): Promise<void> {
    this.#assertThere();
    this.blobs.delete(key);
  }

  async list(prefix: string, after?: string): Promise<BlobPage> {
    this.#assertThere();
    const keys = [...this.blobs.keys()]
      .filter((key) => key.startsWith(prefix))
      .sort(this.#compare)
      .filter((key) => after === undefined || this.#compare(key, after) > 0);
    const page = keys.slice(0, this.#pageSize);
    return {
      blobs: page.map((key) => ({ key, storedBytes: this.blobs.get(key)?.length ?? 0, modifiedAt: new Date(0) })),
      next: keys.length > page.length ? (page.at(-1) ?? null) : null,
    };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    this.#assertThere();
    return keys.filter((key) => !this.blobs.has(key));
  }

  async sweepUnfinished(): Promise<number> {
    return 0;
  }

  async check(): Promise<void> {
    this.#assertThere();
  }

  async close(): Promise<void> {}

  #assertThere(): void {
    if (this.isAway) throw new BlobStoreUnavailableError('unreachable', 'The store is away');
  }
}
