import { createHash, randomBytes } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createZstdCompress, createZstdDecompress, zstdCompress, zstdDecompress } from 'node:zlib';
import { BlobNotFoundError, type BlobStore } from '../platform/blobs/blob-store.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import type { BlobRepository } from './blob-repository.ts';
import { type ByteSource, bytesOf } from './byte-source.ts';
import { type EncodedDocument, zstdOptions } from './document-codec.ts';

const compressWhole = promisify(zstdCompress);
const decompressWhole = promisify(zstdDecompress);

/** Documents up to this size are compressed in one call rather than as a stream. */
const wholeLimitBytes = 1024 * 1024;
/** Of decoded bytes. Node's 16 KiB would cost a large document a thousand turns of the event loop. */
const openChunkBytes = 128 * 1024;

/** Where the encoded bytes of a document lie, and what they are. */
export interface StoredDocument {
  readonly sha256: Buffer;
  readonly sizeBytes: number;
  readonly storedBytes: number;
  readonly codec: string;
  readonly inlineBytes: Buffer | null;
  readonly blobKey: string | null;
}

/** What is needed to read one back. */
export type DocumentPlace = Pick<StoredDocument, 'codec' | 'inlineBytes' | 'blobKey' | 'sizeBytes'>;

/** A row points at bytes that the blob store does not have: superseded just now, or lost. Never "not found" to a client. */
export class DocumentMissingError extends UnavailableError {
  override readonly name = 'DocumentMissingError';
  override readonly code = 'document-missing';
}

/**
 * Keeps the bytes of documents: small ones (compressed) for the row, larger ones in the blob store under a new key that
 * begins with their SHA-256. Saving makes nothing visible; that is for the row that will point here.
 */
export class DocumentStore {
  readonly #blobs: BlobStore;
  readonly #blobRows: BlobRepository;
  readonly #inlineLimit: number;

  constructor(blobs: BlobStore, blobRows: BlobRepository, inlineLimitBytes: number) {
    this.#blobs = blobs;
    this.#blobRows = blobRows;
    this.#inlineLimit = inlineLimitBytes;
  }

  /**
   * Stores a document of any size; reads `source` twice when it goes to the blob store. `verify` is told the hash before
   * anything is stored and may throw.
   */
  async save(source: ByteSource, verify?: (sha256: Buffer) => void): Promise<StoredDocument> {
    const probe = await this.#probe(source);
    verify?.(probe.sha256);
    if (probe.inlineBytes) {
      return { ...probe, storedBytes: probe.inlineBytes.length, codec: 'zstd', blobKey: null };
    }
    const { sha256, sizeBytes } = probe;
    return { sha256, sizeBytes, ...(await this.#put(sha256, compressed(source))) };
  }

  /** Stores a document that has been encoded elsewhere. */
  async saveEncoded(document: EncodedDocument): Promise<StoredDocument> {
    const { sizeBytes } = document;
    const [sha256, bytes] = [asBuffer(document.sha256), asBuffer(document.bytes)];
    if (bytes.length <= this.#inlineLimit) {
      return { sha256, sizeBytes, storedBytes: bytes.length, codec: 'zstd', inlineBytes: bytes, blobKey: null };
    }
    return { sha256, sizeBytes, ...(await this.#put(sha256, bytesOf(bytes)())) };
  }

  /** The document's bytes. Throws DocumentMissingError, and BlobStoreUnavailableError. */
  async *open(place: DocumentPlace): AsyncGenerator<Buffer> {
    if (place.inlineBytes && place.sizeBytes <= wholeLimitBytes) {
      yield await decompressWhole(place.inlineBytes);
      return;
    }
    const encoded = place.inlineBytes ? [place.inlineBytes] : await this.#openBlob(place.blobKey as string);
    const decoder = createZstdDecompress({ chunkSize: openChunkBytes });
    // The caller may stop early; its return() ends this generator, which must not leave the blob's socket open.
    const stream = pipeline(Readable.from(encoded), decoder, () => {});
    try {
      for await (const chunk of stream) yield chunk as Buffer;
    } finally {
      stream.destroy();
    }
  }

  /** The whole document in memory. */
  async read(place: DocumentPlace): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const chunk of this.open(place)) parts.push(chunk);
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** The document as it is stored, in memory of its own. */
  async readEncoded(place: DocumentPlace): Promise<Buffer> {
    if (place.inlineBytes) return place.inlineBytes;
    return Buffer.concat(await Array.fromAsync(await this.#openBlob(place.blobKey as string)));
  }

  async #put(sha256: Buffer, encoded: AsyncIterable<Buffer>): Promise<Omit<StoredDocument, 'sha256' | 'sizeBytes'>> {
    const hex = sha256.toString('hex');
    const blobKey = `checkpoints/${hex.slice(0, 2)}/${hex}-${randomBytes(6).toString('hex')}`;
    await this.#blobRows.insert(blobKey);
    const { storedBytes } = await this.#blobs.put(blobKey, encoded);
    if (!(await this.#blobRows.isKept(blobKey))) {
      // The upload took longer than the grace period: the sweep has deleted what was not there yet.
      await this.#blobs.delete(blobKey);
      throw new UnavailableError('Storing the document took too long; please repeat the call');
    }
    return { storedBytes, codec: 'zstd', inlineBytes: null, blobKey };
  }

  async #openBlob(key: string): Promise<AsyncIterable<Buffer>> {
    try {
      return await this.#blobs.open(key);
    } catch (error) {
      if (!(error instanceof BlobNotFoundError)) throw error;
      throw new DocumentMissingError('The bytes of a stored state are missing in the blob store', { cause: error });
    }
  }

  /** Hash and size; and the compressed bytes, unless they turn out too large for a row. */
  async #probe(source: ByteSource): Promise<{ sha256: Buffer; sizeBytes: number; inlineBytes: Buffer | null }> {
    const hash = createHash('sha256');
    let sizeBytes = 0;
    let kept: Buffer[] | null = [];
    for await (const chunk of source()) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      if (kept && sizeBytes <= wholeLimitBytes) kept.push(chunk);
      else kept = null;
    }
    const sha256 = hash.digest();
    if (!kept) return { sha256, sizeBytes, inlineBytes: null };
    const encoded = await compressWhole(kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept), zstdOptions);
    return { sha256, sizeBytes, inlineBytes: encoded.length <= this.#inlineLimit ? encoded : null };
  }
}

async function* compressed(source: ByteSource): AsyncGenerator<Buffer> {
  const encoder = createZstdCompress(zstdOptions);
  const stream = pipeline(Readable.from(source()), encoder, () => {});
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } finally {
    stream.destroy();
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
