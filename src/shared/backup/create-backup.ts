import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createZstdCompress } from 'node:zlib';
import { headsPrefix, readHeadKey } from '../audit/audit-hash.ts';
import type { BlobStore } from '../platform/blobs/blob-store.ts';
import { once } from '../platform/blobs/blob-streams.ts';
import { inParallel } from '../platform/blobs/in-parallel.ts';
import { holdfastVersion } from '../platform/config/config.ts';
import { type BackupEncryption, blobPrefix } from './backup-encryption.ts';
import { BackupError } from './backup-error.ts';
import { assertOwn, findBackups, nextId } from './backup-list.ts';
import { sweepUploads } from './backup-target.ts';
import { type BackupSource, openChecked } from './checked-blob.ts';
import { KeyPages } from './key-pages.ts';
import { KnownBlobs } from './known-blobs.ts';
import {
  type BlobCopy,
  backupKeys,
  type Manifest,
  ownerOf,
  type TableCopy,
  writeBlobList,
  writeManifest,
} from './manifest.ts';
import { type BodyPace, Meter, type StoredObject, store } from './stored-bytes.ts';
import type { TableCopyRepository } from './table-copy-repository.ts';

export interface BackupProgress {
  readonly step: 'tables' | 'blobs';
  readonly done: number;
  /** Known from the second step on. */
  readonly total: number;
  readonly bytes: number;
}

interface BackupParts {
  /** Uses a connection without a limit on statement time. */
  readonly copies: TableCopyRepository;
  readonly source: BackupSource;
  readonly target: BlobStore;
  readonly encryption: BackupEncryption;
  readonly pace: BodyPace;
  readonly onProgress: (progress: BackupProgress) => void;
  readonly signal: AbortSignal;
}

/** The prefix of the blobs without a row, which are all copied. Other objects in the bucket may be the backups themselves. */
const auditPrefix = 'audit/';
const keysAtOnce = 5_000;
const blobsAtOnce = 8;
const blobsOfList = 2_000;
/** An interrupted backup repeats at most this many bytes per concurrent copy. */
const bytesOfList = 64 * 1024 * 1024;
const cleanUpMs = 5_000;

/**
 * Copies all tables as of one moment, then the blobs that they need and that no earlier backup of the installation, complete or
 * interrupted, has copied. Writes the manifest last. The caller holds the blobs; see backUp. Throws the reason of `signal`.
 */
export async function createBackup(parts: BackupParts): Promise<Manifest> {
  const { encryption, target } = parts;
  const { installation, takenAt: now } = await parts.copies.describe();
  const owner = ownerOf(installation);
  const present = await findBackups(target);
  assertOwn(present, owner);
  const id = nextId(present, now);
  let manifest: Manifest;
  try {
    manifest = await copyAll(parts, id, owner);
  } catch (error) {
    // The next backup copies all tables again, but continues from the lists of blobs. The rollback comes first, because an open snapshot
    // holds up the database. A hung store or connection must not delay it.
    await within(cleanUpMs, parts.copies.rollback());
    await within(cleanUpMs, deleteTables(target, id));
    throw error;
  }
  // From here on, even after an error, the manifest may exist, and needs all objects.
  await target.put(backupKeys.manifest(id), once(await writeManifest(manifest, encryption.encrypt)));
  if ((await target.stat(backupKeys.start(id, owner))) === null) {
    await target.delete(backupKeys.manifest(id));
    throw new BackupError('A prune deleted this unfinished backup, because a later one is complete');
  }
  return manifest;
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([work.catch(() => {}), sleep(ms, undefined, { signal: timer.signal }).catch(() => {})]);
  timer.abort();
}

async function copyAll(parts: BackupParts, id: string, owner: string): Promise<Manifest> {
  const { copies, encryption, signal, target } = parts;
  const recipients = [...encryption.recipients];
  await sweepUploads(target);
  // From now on, prunes delete no blobs.
  await target.put(backupKeys.start(id, owner), once(Buffer.from('\n')));
  const known = await KnownBlobs.open(target, owner);
  const needed = new KeyPages();
  const heads = new KeyPages();
  // Read before the snapshot, which then has each batch whose head is copied, unless retention drops it meanwhile.
  for await (const keys of listAll(parts, headsPrefix)) heads.push(keys);
  await copies.beginSnapshot();
  const bases = await copies.listAuditBases();
  const isKept = (key: string): boolean => {
    const head = readHeadKey(key);
    return head === null || head.batch >= (bases.get(head.organizationId) ?? 0);
  };
  for (const keys of heads.pages()) needed.push(keys.filter(isKept));
  const about = await copies.describe();
  const position = await copies.readPosition();
  const migrations = await copies.listMigrations();
  const tables = await copyTables(parts, id);
  for (let page: string[], after = ''; ; after = page.at(-1) as string) {
    signal.throwIfAborted();
    page = await copies.listReferencedBlobs(after, keysAtOnce);
    needed.push(page);
    if (page.length < keysAtOnce) break;
  }
  // Sequences have no snapshot. Read last, they are beyond all rows.
  const sequences = await copies.listSequences();
  await copies.end();
  for await (const keys of listAll(parts, auditPrefix)) needed.push(keys.filter((key) => !key.startsWith(headsPrefix)));
  const copied = await new BlobCopies(parts, id, known).run(needed);
  const manifest: Manifest = {
    ...{ format: 1, id, takenAt: about.takenAt.toISOString(), finishedAt: new Date().toISOString() },
    ...{
      release: holdfastVersion,
      recipients,
      blobPrefix: blobPrefix(recipients),
      installation: about.installation,
      postgres: about.postgres,
      position,
    },
    ...{ migrations, masterKeys: about.masterKeys, tables, sequences, ...copied },
    bytes: tables.reduce((sum, { object }) => sum + object.bytes, copied.blobs.bytes),
  };
  signal.throwIfAborted();
  return manifest;
}

async function copyTables(
  { copies, onProgress, pace, encryption, signal, target }: BackupParts,
  id: string,
): Promise<TableCopy[]> {
  const tables: TableCopy[] = [];
  const shapes = await copies.listTables();
  let bytes = 0;
  for (const shape of shapes) {
    signal.throwIfAborted();
    const expectedBytes = await copies.estimateBytes(shape);
    const { rows, text } = copies.read(shape);
    const packed = createZstdCompress();
    // Its errors end `packed`, and reach the reader there if one is left.
    pipeline(text, packed).catch(() => {});
    const body = pace.pass(encryption.encrypt(packed));
    const key = backupKeys.table(id, shape.name.replaceAll('"', ''));
    const object = await store(target, key, body, { expectedBytes, signal });
    tables.push({ ...shape, rows: rows(), object });
    bytes += object.bytes;
    onProgress({ step: 'tables', done: tables.length, total: shapes.length, bytes });
  }
  return tables;
}

async function deleteTables(target: BlobStore, id: string): Promise<void> {
  for (let after: string | undefined; ; ) {
    const page = await target.list(`backups/${id}/tables/`, after);
    for (const { key } of page.blobs) await target.delete(key);
    if (page.next === null) return;
    after = page.next;
  }
}

async function* listAll({ source, signal }: BackupParts, prefix: string): AsyncGenerator<string[]> {
  for (let after: string | undefined; ; ) {
    signal.throwIfAborted();
    const page = await source.blobs.list(prefix, after);
    yield page.blobs.map(({ key }) => key);
    if (page.next === null) return;
    after = page.next;
  }
}

class BlobCopies {
  readonly #parts: BackupParts;
  readonly #id: string;
  readonly #prefix: string;
  readonly #known: KnownBlobs;
  readonly #lists: StoredObject[] = [];
  readonly #missing: string[] = [];
  readonly #wrong: string[] = [];
  #unchecked = 0;
  /** Keys in the target of the blobs that this backup has copied. */
  readonly #fresh = new KeyPages();
  #list: BlobCopy[] = [];
  #count = 0;
  #bytes = 0;
  #written = 0;
  #unlisted = 0;

  constructor(parts: BackupParts, id: string, known: KnownBlobs) {
    this.#parts = parts;
    this.#id = id;
    this.#prefix = blobPrefix(parts.encryption.recipients);
    this.#known = known;
  }

  async run(
    keys: KeyPages,
  ): Promise<Pick<Manifest, 'blobLists' | 'blobs' | 'missingBlobs' | 'wrongBlobs' | 'uncheckedBlobs'>> {
    for (const page of keys.pages()) await this.#copyPage(page, keys.length);
    await this.#writeList();
    await this.#assertKept();
    return {
      blobLists: this.#lists,
      blobs: { count: this.#count, bytes: this.#bytes },
      missingBlobs: this.#missing.sort(),
      wrongBlobs: this.#wrong.sort(),
      uncheckedBlobs: this.#unchecked,
    };
  }

  async #copyPage(keys: readonly string[], total: number): Promise<void> {
    this.#parts.signal.throwIfAborted();
    const known = await this.#known.find(keys.map((key) => this.#prefix + key));
    await inParallel(
      keys,
      this.#parts.signal,
      (key) => this.#copy(key, known.get(this.#prefix + key), total),
      blobsAtOnce,
    );
  }

  async #copy(key: string, known: BlobCopy | undefined, total: number): Promise<void> {
    this.#parts.signal.throwIfAborted();
    const copied = (known && (await this.#stillThere(known))) ?? (await this.#copyAnew(key));
    if (copied !== null) {
      this.#list.push(copied);
      this.#count++;
      this.#bytes += copied.bytes;
    }
    if (this.#list.length >= blobsOfList || this.#unlisted >= bytesOfList) await this.#writeList();
    this.#parts.onProgress({ step: 'blobs', done: this.#count, total, bytes: this.#written });
  }

  async #stillThere(copy: BlobCopy): Promise<BlobCopy | null> {
    const { target } = this.#parts;
    const found = await target.stat(copy.key);
    if (found?.storedBytes !== copy.bytes) return null;
    await target.keepLocked?.(copy.key, found);
    return copy;
  }

  /** Returns null if no store has the blob with its hash. */
  async #copyAnew(key: string): Promise<BlobCopy | null> {
    const { pace, encryption, signal, source, target } = this.#parts;
    const checked = await openChecked(source, key);
    if (checked.body === null) {
      (checked.state === 'missing' ? this.#missing : this.#wrong).push(key);
      return null;
    }
    if (checked.state === 'unchecked') this.#unchecked++;
    const meter = new Meter();
    const targetKey = this.#prefix + key;
    const body = pace.pass(encryption.encrypt(meter.pass(checked.body)));
    const stored = await store(target, targetKey, body, { signal });
    this.#fresh.push([targetKey]);
    this.#written += stored.bytes;
    this.#unlisted += stored.bytes;
    return { ...stored, size: meter.bytes };
  }

  /** A prune that listed a blob before this backup began may have deleted the new copy. */
  async #assertKept(): Promise<void> {
    for (const fresh of this.#fresh.pages()) {
      const [gone] = await this.#parts.target.findAbsent(fresh);
      if (gone !== undefined) throw new BackupError(`A prune has deleted ${gone} meanwhile: repeat the backup`);
    }
  }

  /** After an interruption, the next backup continues from these lists. */
  async #writeList(): Promise<void> {
    if (this.#list.length === 0) return;
    const text = writeBlobList(this.#list);
    this.#list = [];
    this.#unlisted = 0;
    const key = backupKeys.blobList(this.#id, this.#lists.length + 1);
    // Reserved before the write, so that two lists never get the same number.
    const index = this.#lists.push({ key, bytes: 0, sha256: '' }) - 1;
    this.#lists[index] = await store(this.#parts.target, key, once(text));
  }
}
