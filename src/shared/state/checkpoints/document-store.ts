import { randomBytes } from 'node:crypto';
import { BlobNotFoundError, type BlobStore } from '../../platform/blobs/blob-store.ts';
import { joined } from '../../platform/bytes/buffers.ts';
import { type ByteSource, bytesOf } from '../../platform/bytes/byte-source.ts';
import { UnavailableError } from '../../platform/errors/errors.ts';
import type { DataKeys } from '../../secrets/data-keys.ts';
import type { BlobRepository } from './blob-repository.ts';
import { ChunkReader, type RepairChunk } from './chunks/chunk-reader.ts';
import type { ChunkLocation, ChunkRepository, ChunkRow } from './chunks/chunk-repository.ts';
import {
  checked,
  compress,
  compressed,
  DamagedBytesError,
  type DocumentDigest,
  decompressed,
  decompressedStream,
  type EncodedDocument,
  HashedText,
  maxEncodedBytes,
  type Verify,
  wholeLimitBytes,
} from './document-codec.ts';
import { decryptBytes, decryptRange, encryptBytes } from './document-encryption.ts';

/** Values of `codec`. Only objects in the blob store are encrypted. */
const plainCodec = 'zstd';
const encryptedCodec = 'zstd+encrypted';
/** The text of an older version is in chunks that refer to earlier versions. */
export const chunksCodec = 'chunks';

export interface StoredDocument {
  readonly sha256: Buffer;
  readonly sizeBytes: number;
  readonly storedBytes: number;
  readonly codec: string;
  readonly inlineBytes: Buffer | null;
  readonly blobKey: string | null;
}

type BytesLocation = Pick<StoredDocument, 'codec' | 'inlineBytes' | 'blobKey' | keyof DocumentDigest>;

export interface DocumentLocation extends BytesLocation {
  /** The checkpoint; needed for a document in chunks. */
  readonly id?: string;
}

/** A row points at bytes that the blob store lacks: just superseded, or lost. Clients never see this as "not found". */
export class DocumentMissingError extends UnavailableError {
  override readonly name = 'DocumentMissingError';
  override readonly code = 'document-missing';
}

export interface Encryption {
  readonly isOn: boolean;
  readonly keys: DataKeys;
}

/**
 * Small documents are returned compressed, for the caller's row; larger ones go to the blob store under a new key, encrypted if encryption
 * is on. A saved document becomes visible only when a row points at it.
 */
export class DocumentStore {
  readonly #blobs: Pick<BlobStore, 'open' | 'put'>;
  readonly #blobRows: BlobRepository;
  readonly #inlineLimit: number;
  readonly #encryption: Encryption;
  readonly #chunks: ChunkReader;

  constructor(
    blobs: Pick<BlobStore, 'open' | 'put'>,
    rows: { readonly blobs: BlobRepository; readonly chunks: ChunkRepository },
    inlineLimitBytes: number,
    encryption: Encryption,
  ) {
    this.#blobs = blobs;
    this.#blobRows = rows.blobs;
    this.#inlineLimit = inlineLimitBytes;
    this.#encryption = encryption;
    const missing = (): Error => new DocumentMissingError('The chunks of a stored state are gone; please retry');
    this.#chunks = new ChunkReader(rows.chunks, (chunk) => this.#readWhole(chunk), missing);
  }

  /**
   * Reads `source` once. `verify` gets the hash after the last byte was read and before the object becomes visible. If `verify` or `source`
   * throws, nothing is stored.
   */
  async save(source: ByteSource, verify?: Verify): Promise<StoredDocument> {
    const text = new HashedText(source(), verify);
    try {
      const head = await text.readHead(wholeLimitBytes);
      if (text.digest) return await this.saveEncoded({ ...text.digest, bytes: await compress(joined(head)) });
      const stored = await this.#put(newBlobKey(), compressed(text.from(head)));
      if (!text.digest) throw new TypeError('The blob store stored a document without reading all of it');
      return { ...(text.digest as DocumentDigest & { sha256: Buffer }), ...stored };
    } finally {
      text.close();
    }
  }

  async saveEncoded(document: EncodedDocument): Promise<StoredDocument> {
    const { sizeBytes } = document;
    const [sha256, bytes] = [asBuffer(document.sha256), asBuffer(document.bytes)];
    if (bytes.length <= this.#inlineLimit) {
      return { sha256, sizeBytes, storedBytes: bytes.length, codec: plainCodec, inlineBytes: bytes, blobKey: null };
    }
    return { sha256, sizeBytes, ...(await this.#put(newNamedBlobKey(sha256), bytesOf(bytes)())) };
  }

  /** The bytes are zstd frames whose text the caller hashes; `readRange` reads them. Holds at most an inline document in memory. */
  async saveStream(encoded: AsyncIterable<Buffer>): Promise<Omit<StoredDocument, keyof DocumentDigest>> {
    const source = encoded[Symbol.asyncIterator]();
    const head: Buffer[] = [];
    let bytes = 0;
    for (;;) {
      const step = await source.next();
      if (step.done) break;
      head.push(step.value);
      bytes += step.value.length;
      if (bytes <= this.#inlineLimit) continue;
      return this.#put(newBlobKey(), continued(head, source));
    }
    return { storedBytes: bytes, codec: plainCodec, inlineBytes: Buffer.concat(head, bytes), blobKey: null };
  }

  /**
   * The encoded bytes `start` to `end` (exclusive), unchecked, and fewer if the document is damaged. Throws DocumentMissingError,
   * BlobStoreUnavailableError and MasterKeyError; for an encrypted document, also DamagedBytesError.
   */
  async readRange(
    {
      blobKey,
      codec,
      inlineBytes,
      storedBytes,
    }: Pick<StoredDocument, 'blobKey' | 'codec' | 'inlineBytes' | 'storedBytes'>,
    start: number,
    end: number,
  ): Promise<Buffer> {
    if (inlineBytes) return inlineBytes.subarray(start, end);
    const key = blobKey as string;
    const read = async (from: number, to: number): Promise<Buffer> => {
      const parts: Buffer[] = [];
      try {
        for await (const part of await this.#blobs.open(key, { range: { start: from, end: to } })) parts.push(part);
      } catch (error) {
        throw asMissing(error);
      }
      return joined(parts);
    };
    if (codec !== encryptedCodec) return read(start, end);
    return decryptRange((id) => this.#encryption.keys.find(id), key, { start, end, encryptedBytes: storedBytes }, read);
  }

  /**
   * Checks size and SHA-256: of a small document before its first byte, of a larger one before its last chunk, so that a reader never
   * completes wrong bytes. Throws DamagedBytesError, DocumentMissingError, BlobStoreUnavailableError, and MasterKeyError. `chunks` may use
   * another connection.
   */
  async *open(location: DocumentLocation, chunks?: ChunkRepository, repair?: RepairChunk): AsyncGenerator<Buffer> {
    if (location.codec === chunksCodec) {
      yield* checked(this.#chunks.open(location.id as string, chunks, repair), location);
      return;
    }
    if (location.sizeBytes <= wholeLimitBytes) {
      yield await decompressed(await this.#readWhole(location), location);
      return;
    }
    yield* decompressedStream(location.inlineBytes ? [location.inlineBytes] : await this.#openBlob(location), location);
  }

  /** Checks the document like `open`. */
  async read(location: DocumentLocation): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const chunk of this.open(location)) parts.push(chunk);
    return joined(parts);
  }

  /**
   * The result has its own memory, and is checked when it is decoded (`decodeDocument`). A document in chunks is joined, checked and
   * compressed for this call.
   */
  async readEncoded(location: DocumentLocation): Promise<EncodedDocument> {
    const { sha256, sizeBytes } = location;
    if (location.codec === chunksCodec) {
      return { sha256, sizeBytes, bytes: Buffer.concat(await Array.fromAsync(compressed(this.open(location)))) };
    }
    return { sha256, sizeBytes, bytes: await this.#readWhole(location) };
  }

  /** Checks the text. Throws like `open`. */
  readChunk(chunk: ChunkRow): Promise<Buffer> {
    return this.#chunks.read(chunk);
  }

  /** If the document was encrypted, or encryption is on, the chunk always goes to the blob store, which encrypts it. */
  async saveChunk(sha256: Buffer, bytes: Buffer, { wasEncrypted }: { wasEncrypted: boolean }): Promise<ChunkLocation> {
    if (bytes.length <= this.#inlineLimit && !wasEncrypted && !this.#encryption.isOn) {
      return { storedBytes: bytes.length, codec: plainCodec, inlineBytes: bytes, blobKey: null };
    }
    return this.#put(newNamedBlobKey(sha256), bytesOf(bytes)());
  }

  /** The bytes are unencrypted. */
  readStoredChunk(chunk: BytesLocation): Promise<Buffer> {
    return this.#readWhole(chunk);
  }

  /** Throws DamagedBytesError as soon as there are more bytes than the document can have. */
  async #readWhole(location: BytesLocation): Promise<Buffer> {
    const { inlineBytes, sizeBytes } = location;
    if (inlineBytes) return inlineBytes;
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of await this.#openBlob(location)) {
      bytes += part.length;
      if (bytes > maxEncodedBytes(sizeBytes)) {
        throw new DamagedBytesError(`There are more stored bytes than a document of ${sizeBytes} bytes can have`);
      }
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  /** `plainKey` is the key of the blob if it is not encrypted. */
  async #put(plainKey: string, encoded: AsyncIterable<Buffer>): Promise<Omit<StoredDocument, 'sha256' | 'sizeBytes'>> {
    const key = this.#encryption.isOn ? await this.#encryption.keys.current(null) : null;
    const blobKey = key ? newBlobKey() : plainKey;
    await this.#blobRows.insert(blobKey, key?.id ?? null);
    const { storedBytes } = await this.#blobs.put(blobKey, key ? encryptBytes(key, blobKey, encoded) : encoded);
    if (!(await this.#blobRows.isKept(blobKey))) {
      // The upload took longer than the sweep waits. The sweep deleted the key before the object existed, and must delete it again.
      await this.#blobRows.scheduleDeletion(blobKey);
      throw new UnavailableError('Storing the document took too long; please retry');
    }
    return { storedBytes, codec: key ? encryptedCodec : plainCodec, inlineBytes: null, blobKey };
  }

  async #openBlob({ blobKey, codec }: BytesLocation): Promise<AsyncIterable<Buffer>> {
    const key = blobKey as string;
    try {
      const stored = await this.#blobs.open(key);
      if (codec !== encryptedCodec) return stored;
      return decryptBytes((id) => this.#encryption.keys.find(id), key, stored);
    } catch (error) {
      throw asMissing(error);
    }
  }
}

function asMissing(error: unknown): unknown {
  if (!(error instanceof BlobNotFoundError)) return error;
  return new DocumentMissingError('The bytes of a stored document are missing from the blob store', { cause: error });
}

async function* continued(head: readonly Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  let isEnded = false;
  try {
    yield* head;
    for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value;
    isEnded = true;
  } finally {
    if (!isEnded) await rest.return?.();
  }
}

/** The hash is known before the upload. The random part makes each upload a separate object. */
function newNamedBlobKey(sha256: Buffer): string {
  const hex = sha256.toString('hex');
  return `checkpoints/${hex.slice(0, 2)}/${hex}-${randomBytes(6).toString('hex')}`;
}

/**
 * For objects whose hash is unknown when the upload begins, or must stay secret: the name of an encrypted object reveals nothing about the
 * document.
 */
function newBlobKey(): string {
  const hex = randomBytes(16).toString('hex');
  return `checkpoints/${hex.slice(0, 2)}/${hex}`;
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
