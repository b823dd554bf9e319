import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { once } from '../platform/blobs/blob-streams.ts';
import { standard } from '../platform/schema/standard-schema.ts';
import type { BackupEncryption, Decrypt } from './backup-encryption.ts';
import { BackupError, DamagedManifestError } from './backup-error.ts';
import { StoredObject } from './stored-bytes.ts';

const TableCopy = Type.Object({
  name: Type.String(),
  columns: Type.Array(Type.String()),
  partitions: Type.Array(Type.Object({ name: Type.String(), bounds: Type.String() })),
  rows: Type.Integer({ minimum: 0 }),
  object: StoredObject,
});
export type TableCopy = Static<typeof TableCopy>;

const SequenceValue = Type.Object({ name: Type.String(), value: Type.Integer() });
export type SequenceValue = Static<typeof SequenceValue>;

/** All but `size` describes the object, which may be encrypted. */
const BlobCopy = Type.Object({
  ...StoredObject.properties,
  size: Type.Integer({ minimum: 0 }),
});
export type BlobCopy = Static<typeof BlobCopy>;

const Contents = Type.Object({
  installation: Type.String(),
  postgres: Type.String(),
  /** Position in the write-ahead log; null if the server does not report it. */
  position: Type.Union([Type.String(), Type.Null()]),
  migrations: Type.Array(Type.String()),
  masterKeys: Type.Array(Type.String()),
  tables: Type.Array(TableCopy),
  sequences: Type.Array(SequenceValue),
});

const Head = Type.Object({
  format: Type.Literal(1),
  id: Type.String(),
  /** ISO 8601: the moment as of which the tables were copied, and the end of the last copy. */
  takenAt: Type.String(),
  finishedAt: Type.String(),
  release: Type.String(),
  /** Stored bytes of tables and blobs. */
  bytes: Type.Integer({ minimum: 0 }),
  /** Age recipients; empty if the backup is not encrypted. */
  recipients: Type.Array(Type.String()),
  blobPrefix: Type.String(),
  /** Unencrypted. Each line is a BlobCopy as JSON. */
  blobLists: Type.Array(StoredObject),
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
  /** A state needs these blobs, and the store lacked them. */
  missingBlobs: Type.Array(Type.String()),
  /** No readable copy has their hash. They are not in the backup. Earlier releases made no comparison. */
  wrongBlobs: Type.Optional(Type.Array(Type.String())),
  /** Blobs copied without a comparison: encrypted without keys at hand, or replaced meanwhile. */
  uncheckedBlobs: Type.Optional(Type.Integer({ minimum: 0 })),
  /** JSON; in an encrypted backup, encrypted and in base64. */
  contents: Type.String(),
});
/** Written last: a backup without it is incomplete. It can be read without an identity. */
export type ManifestHead = Static<typeof Head>;
const { contents: _, ...openHead } = Head.properties;
export const Manifest = Type.Object({ ...openHead, ...Contents.properties });
export type Manifest = Static<typeof Manifest>;

export const backupKeys = {
  root: 'backups/',
  /** Written first. For `owner`, see ownerOf. */
  start: (id: string, owner: string): string => `backups/${id}/started/${owner}`,
  manifest: (id: string): string => `backups/${id}/manifest.json`,
  /** Written by a verification without faults. */
  verified: (id: string): string => `backups/${id}/verified`,
  table: (id: string, table: string): string => `backups/${id}/tables/${table}.zst`,
  blobList: (id: string, number: number): string => `backups/${id}/blobs/${String(number).padStart(6, '0')}.ndjson`,
  /** A blob never changes, so backups share its copy. */
  blobs: 'blobs/',
};

/** Names an installation in keys, without its id, which an encrypted backup does not reveal. */
export const ownerOf = (installation: string): string => hashOf(installation).slice(0, 16);

/** The last line is the SHA-256 of the rest. */
export async function writeManifest(manifest: Manifest, encrypt: BackupEncryption['encrypt']): Promise<Buffer> {
  const { installation, masterKeys, migrations, position, postgres, sequences, tables, ...head } = manifest;
  const contents = JSON.stringify({ installation, masterKeys, migrations, position, postgres, sequences, tables });
  const encrypted = Buffer.concat(await Array.fromAsync(encrypt(once(Buffer.from(contents)))));
  const encoding = head.recipients.length > 0 ? 'base64' : 'utf8';
  return withHash(JSON.stringify({ ...head, contents: encrypted.toString(encoding) } satisfies ManifestHead));
}

export function readManifestHead(id: string, bytes: Buffer): ManifestHead {
  const what = `The manifest of backup ${id}`;
  const text = readHashed(bytes);
  if (text === null) throw new DamagedManifestError(id, `${what} is damaged`);
  const head = parse(Head, parseJson(text, what), what);
  if (head.id !== id) throw new DamagedManifestError(id, `${what} is the manifest of backup ${head.id}`);
  return head;
}

export async function readManifest(head: ManifestHead, decrypt: Decrypt | null): Promise<Manifest> {
  const { contents, id, recipients } = head;
  const what = `The manifest of backup ${id}`;
  let text = contents;
  if (recipients.length > 0) {
    if (decrypt === null)
      throw new BackupError(`Backup ${id} is encrypted to ${recipients.join(', ')}: give --identity FILE`);
    text = Buffer.concat(await Array.fromAsync(decrypt(once(Buffer.from(contents, 'base64'))))).toString('utf8');
  }
  const { contents: _, ...rest } = head;
  return { ...rest, ...parse(Contents, parseJson(text, what), what) };
}

/** The last line is the SHA-256 of the rest. */
export function writeBlobList(blobs: readonly BlobCopy[]): Buffer {
  return withHash(blobs.map((blob) => JSON.stringify(blob)).join('\n'));
}

export function readBlobList(key: string, bytes: Buffer): BlobCopy[] {
  const text = readHashed(bytes);
  if (text === null) throw new BackupError(`${key} is damaged`);
  return text.split('\n').map((line) => parse(BlobCopy, parseJson(line, key), key));
}

function withHash(text: string): Buffer {
  return Buffer.from(`${text}\n${hashOf(text)}\n`);
}

function readHashed(bytes: Buffer): string | null {
  const lines = bytes.toString('utf8').split('\n');
  const [hash, rest] = lines.splice(-2);
  const text = lines.join('\n');
  return rest === '' && hash === hashOf(text) ? text : null;
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BackupError(`${what} is not JSON`, { cause: error });
  }
}

function parse<S extends typeof Head | typeof Contents | typeof BlobCopy>(
  schema: S,
  value: unknown,
  what: string,
): Static<S> {
  const result = standard(schema)['~standard'].validate(value);
  if ('value' in result) return result.value as Static<S>;
  const [issue] = result.issues;
  throw new BackupError(
    `${what} is not of format 1, which this release reads: ${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`.trim(),
  );
}
