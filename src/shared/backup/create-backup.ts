import { createZstdCompress } from 'node:zlib';
import { BlobNotFoundError, type BlobStore } from '../platform/blobs/blob-store.ts';
import { placeKey } from '../platform/blobs/places/placed-blob-store.ts';
import { holdfastVersion } from '../platform/config/config.ts';
import { listBlobs } from './backup-content.ts';
import { type FoundBackup, findBackups, openBackup } from './backup-list.ts';
import {
  BackupError,
  type Manifest,
  places,
  readBlobList,
  type StoredObject,
  type TableCopy,
  writeManifest,
} from './manifest.ts';
import { once, readSmall, store } from './stored-bytes.ts';
import type { TableCopyRepository } from './table-copy-repository.ts';

/** What a backup has done so far. */
export interface BackupProgress {
  readonly step: 'tables' | 'blobs';
  readonly done: number;
  /** Known in the second step. */
  readonly total: number;
  /** Written to the target. */
  readonly bytes: number;
}

interface BackupParts {
  /** On a connection without a limit of the time that a statement may take. */
  readonly copies: TableCopyRepository;
  /** The blob store. */
  readonly blobs: BlobStore;
  readonly target: BlobStore;
  readonly onProgress: (progress: BackupProgress) => void;
  /** Checked between objects. */
  readonly signal: AbortSignal;
}

/** Blobs of documents. They have a row each; only the ones that are in use are copied. All others are copied. */
const documentPrefix = 'checkpoints/';
const keysAtOnce = 5_000;
const blobsAtOnce = 8;
const blobsOfList = 2_000;

/**
 * Writes a backup to the target and returns its manifest, which is written last. Copies all tables as of one moment, then the blobs that
 * they need and that no earlier backup has copied, also one that was interrupted. The caller holds the blobs: see backUp. Throws
 * BlobStoreUnavailableError, BackupError and the reason of `signal`.
 */
export async function createBackup(parts: BackupParts): Promise<Manifest> {
  const { blobs, copies, target } = parts;
  const id = new Date().toISOString().replace(/[-:.]/g, '').toLowerCase();
  // From now on, a prune deletes no blobs.
  await target.put(places.start(id), once(Buffer.from('\n')));
  const known = await readKnownBlobs(target);
  await copies.beginSnapshot();
  const about = await copies.describe();
  const position = await copies.readPosition().catch(() => null);
  const migrations = await copies.listMigrations();
  const tables = await copyTables(parts, id);
  const needed: string[] = [];
  for (let page: string[], after = ''; ; after = page.at(-1) as string) {
    page = await copies.listReferencedBlobs(after, keysAtOnce);
    needed.push(...page);
    if (page.length < keysAtOnce) break;
  }
  // Sequences have no snapshot: read last, they are past all rows.
  const sequences = await copies.listSequences();
  await copies.end();
  for await (const key of listOthers(blobs)) needed.push(key);
  const copied = await new BlobCopy(parts, id, known).run(needed);
  const manifest: Manifest = {
    ...{ format: 1, id, takenAt: about.takenAt.toISOString(), finishedAt: new Date().toISOString() },
    ...{ release: holdfastVersion, installation: about.installation, postgres: about.postgres, position },
    ...{ migrations, masterKeys: about.masterKeys, tables, sequences, ...copied },
  };
  parts.signal.throwIfAborted();
  await target.put(places.manifest(id), once(writeManifest(manifest)));
  return manifest;
}

async function copyTables({ copies, onProgress, signal, target }: BackupParts, id: string): Promise<TableCopy[]> {
  const tables: TableCopy[] = [];
  const shapes = await copies.listTables();
  let bytes = 0;
  for (const shape of shapes) {
    signal.throwIfAborted();
    const { rows, text } = copies.read(shape);
    const packed = text.pipe(createZstdCompress());
    text.on('error', (error) => packed.destroy(error));
    const object = await store(target, places.table(id, shape.name.replaceAll('"', '')), packed);
    tables.push({ ...shape, rows: rows(), object });
    bytes += object.bytes;
    onProgress({ step: 'tables', done: tables.length, total: shapes.length, bytes });
  }
  return tables;
}

/** Blobs without a row, as heads and exports of the audit log, except what marks the place where they are. */
async function* listOthers(blobs: BlobStore): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const page = await blobs.list('', after);
    for (const { key } of page.blobs) if (!key.startsWith(documentPrefix) && !key.startsWith(placeKey(''))) yield key;
    if (page.next === null) return;
    after = page.next;
  }
}

/**
 * The blobs that the newest complete backup has, and what interrupted ones have copied since, by key in the blob store. Blobs of a
 * damaged list are copied anew.
 */
async function readKnownBlobs(target: BlobStore): Promise<Map<string, StoredObject>> {
  const known = new Map<string, StoredObject>();
  const backups = await findBackups(target);
  const newest = backups.findLastIndex(({ isComplete }) => isComplete);
  for (const backup of backups.slice(Math.max(newest, 0))) {
    try {
      for await (const blob of listCopied(target, backup)) known.set(blob.key, blob);
    } catch (error) {
      if (!(error instanceof BackupError)) throw error;
    }
  }
  return known;
}

async function* listCopied(
  target: BlobStore,
  { blobLists, id, isComplete }: FoundBackup,
): AsyncGenerator<StoredObject> {
  if (isComplete) yield* listBlobs(target, await openBackup(target, id));
  else for (const key of blobLists) yield* readBlobList(key, await readSmall(target, key));
}

class BlobCopy {
  readonly #parts: BackupParts;
  readonly #id: string;
  readonly #known: ReadonlyMap<string, StoredObject>;
  readonly #lists: StoredObject[] = [];
  readonly #missing: string[] = [];
  #list: StoredObject[] = [];
  #count = 0;
  #bytes = 0;
  #written = 0;

  constructor(parts: BackupParts, id: string, known: ReadonlyMap<string, StoredObject>) {
    this.#parts = parts;
    this.#id = id;
    this.#known = known;
  }

  async run(keys: readonly string[]): Promise<Pick<Manifest, 'blobLists' | 'blobs' | 'missingBlobs'>> {
    let next = 0;
    const copyNext = async (): Promise<void> => {
      try {
        while (next < keys.length) await this.#copy(keys[next++] as string, keys.length);
      } catch (error) {
        // The others end with the blob that they copy.
        next = keys.length;
        throw error;
      }
    };
    const copies = Array.from({ length: blobsAtOnce }, copyNext);
    await Promise.allSettled(copies);
    await Promise.all(copies);
    await this.#writeList();
    return {
      blobLists: this.#lists,
      blobs: { count: this.#count, bytes: this.#bytes },
      missingBlobs: this.#missing.sort(),
    };
  }

  async #copy(key: string, total: number): Promise<void> {
    this.#parts.signal.throwIfAborted();
    const copied = (await this.#findCopy(key)) ?? (await this.#copyAnew(key));
    if (copied === null) this.#missing.push(key);
    else {
      this.#list.push(copied);
      this.#count++;
      this.#bytes += copied.bytes;
    }
    if (this.#list.length >= blobsOfList) await this.#writeList();
    this.#parts.onProgress({ step: 'blobs', done: this.#count, total, bytes: this.#written });
  }

  /** The copy that an earlier backup has made, if it is still there. */
  async #findCopy(key: string): Promise<StoredObject | null> {
    const copy = this.#known.get(key);
    if (!copy) return null;
    const stat = await this.#parts.target.stat(places.blob(key));
    return stat?.storedBytes === copy.bytes ? copy : null;
  }

  /** Null: the store does not have it. */
  async #copyAnew(key: string): Promise<StoredObject | null> {
    const { blobs, target } = this.#parts;
    const body = await blobs.open(key).catch((error: unknown) => {
      if (error instanceof BlobNotFoundError) return null;
      throw error;
    });
    if (body === null) return null;
    const stored = await store(target, places.blob(key), body);
    this.#written += stored.bytes;
    return { ...stored, key };
  }

  /** An interrupted backup leaves its lists, so that the next one goes on from there. */
  async #writeList(): Promise<void> {
    if (this.#list.length === 0) return;
    const text = this.#list.map((blob) => `${JSON.stringify(blob)}\n`).join('');
    this.#list = [];
    const key = places.blobList(this.#id, this.#lists.length + 1);
    // Reserved before the write, so that two lists never have the same number.
    const place = this.#lists.push({ key, bytes: 0, sha256: '' }) - 1;
    this.#lists[place] = await store(this.#parts.target, key, once(Buffer.from(text)));
  }
}
