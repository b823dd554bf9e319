import { type BlobRange, type BlobStore, BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { once } from '../platform/blobs/blob-streams.ts';
import { readBlob } from '../platform/blobs/locations/located-blob-store.ts';
import { MasterKeyError } from '../secrets/key-ring.ts';
import { hasRow } from '../state/checkpoints/blob-repository.ts';
import type { DocumentCopies, ReadDocument } from '../state/checkpoints/document-copies.ts';
import { isDamage } from '../state/checkpoints/document-damage.ts';
import type { DocumentStore } from '../state/checkpoints/document-store.ts';
import { BackupError } from './backup-error.ts';
import { type BlobReaderParts, findBlobReader } from './blob-reader.ts';
import { Meter } from './stored-bytes.ts';

export interface BackupSource extends BlobReaderParts {
  readonly blobs: BlobStore;
  readonly copies: DocumentCopies;
  readonly documentsOver: (blobs: Pick<BlobStore, 'open' | 'put'>) => DocumentStore;
}

/** `wrong`: no readable copy has its hash. `unchecked`: encrypted without keys at hand, or no longer referenced. */
export type CheckedBlob =
  | { readonly state: 'right' | 'unchecked'; readonly body: AsyncIterable<Buffer> }
  | { readonly state: 'missing' | 'wrong'; readonly body: null };

/** Larger blobs are read again for the copy. */
const keptBytes = 4 * 1024 * 1024;
const attempts = 3;
const checkMs = 5_000;

/**
 * Opens a blob after comparing its bytes with the hash in the database. If one store has wrong bytes, takes the other's and repairs the
 * first. Throws BlobStoreUnavailableError while the blob store is away.
 */
export async function openChecked(source: BackupSource, key: string): Promise<CheckedBlob> {
  const { blobs } = source;
  const read = await findBlobReader(source, key);
  if (read === null) return openUnchecked(blobs, key, hasRow(key) ? 'unchecked' : 'right');
  for (let attempt = 1; ; attempt++) {
    const reader = new KeepingReader(source.copies, key);
    try {
      await read(source.documentsOver(reader));
      return { state: 'right', body: reader.body() };
    } catch (error) {
      if (error instanceof MasterKeyError) return openUnchecked(blobs, key, 'unchecked');
      if (!isDamage(error)) {
        if (!(error instanceof BlobStoreUnavailableError)) throw error;
        // One unreadable blob does not end the backup of the others.
        await blobs.check(checkMs);
        if (attempt === attempts) return { state: 'wrong', body: null };
      } else if (attempt === attempts || !(await isRightSomewhere(source, read))) {
        const isMissing = await blobs.stat(key).then(
          (found) => found === null,
          () => false,
        );
        return { state: isMissing ? 'missing' : 'wrong', body: null };
      }
    }
  }
}

/** Repairs the store with wrong bytes. Returns false also while the other store is away. */
async function isRightSomewhere({ copies }: BackupSource, read: ReadDocument): Promise<boolean> {
  try {
    return (await copies.prove(read)) !== 'damaged';
  } catch (error) {
    if (error instanceof BlobStoreUnavailableError) return false;
    throw error;
  }
}

async function openUnchecked(blobs: BlobStore, key: string, state: 'right' | 'unchecked'): Promise<CheckedBlob> {
  if ((await blobs.stat(key)) === null) return { state: 'missing', body: null };
  return { state, body: readBlob(blobs, key) };
}

/** Keeps the bytes of one blob, so that the compared bytes are copied. */
class KeepingReader {
  readonly #blobs: Pick<BlobStore, 'open'>;
  readonly #key: string;
  /** Undefined if not read yet; null if too large. */
  #kept: Buffer | null | undefined;
  #sha256: string | null = null;

  constructor(blobs: Pick<BlobStore, 'open'>, key: string) {
    this.#blobs = blobs;
    this.#key = key;
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    if (key !== this.#key) return this.#blobs.open(key, options);
    if (this.#kept === undefined) this.#kept = await this.#keep();
    const { range } = options;
    if (this.#kept) return once(range ? this.#kept.subarray(range.start, range.end) : this.#kept);
    const body = await this.#blobs.open(key, options);
    return range ? body : this.#hashed(body);
  }

  put(): never {
    throw new TypeError('A blob that is backed up is not written');
  }

  /** Throws BackupError at the end if a large blob has changed since the comparison. */
  body(): AsyncIterable<Buffer> {
    return this.#kept ? once(this.#kept) : this.#again();
  }

  async *#again(): AsyncGenerator<Buffer> {
    const meter = new Meter();
    yield* meter.pass(await this.#blobs.open(this.#key));
    if (this.#sha256 !== null && meter.sha256 !== this.#sha256)
      throw new BackupError(`${this.#key} was read with other bytes when it was copied: repeat the backup`);
  }

  async #keep(): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of await this.#blobs.open(this.#key)) {
      bytes += part.length;
      if (bytes > keptBytes) return null;
      parts.push(part);
    }
    return Buffer.concat(parts, bytes);
  }

  async *#hashed(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    const meter = new Meter();
    yield* meter.pass(body);
    this.#sha256 = meter.sha256;
  }
}
