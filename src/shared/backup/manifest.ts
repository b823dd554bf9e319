import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { OperatorError } from '../platform/errors/errors.ts';
import { standard } from '../platform/schema/standard-schema.ts';

/** A backup is damaged, incomplete, or of a format that this release does not read. */
export class BackupError extends OperatorError {
  override readonly name = 'BackupError';
}

/** An object of the backup, as it is stored. */
const StoredObject = Type.Object({
  key: Type.String(),
  bytes: Type.Integer({ minimum: 0 }),
  /** Of the stored bytes, lower-case hex. */
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type StoredObject = Static<typeof StoredObject>;

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

const Manifest = Type.Object({
  format: Type.Literal(1),
  id: Type.String(),
  /** When the copied database was as it is in the backup, and when the last blob was copied; ISO 8601. */
  takenAt: Type.String(),
  finishedAt: Type.String(),
  release: Type.String(),
  installation: Type.String(),
  postgres: Type.String(),
  /** Position of the write-ahead log; null if the server does not report it. */
  position: Type.Union([Type.String(), Type.Null()]),
  /** In the order in which they were applied. */
  migrations: Type.Array(Type.String()),
  /** Ids of the master keys that the stored data need. */
  masterKeys: Type.Array(Type.String()),
  tables: Type.Array(TableCopy),
  sequences: Type.Array(SequenceValue),
  /** Lists of the blobs: each line is a StoredObject as JSON. `key` is the key in the blob store. */
  blobLists: Type.Array(StoredObject),
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer() }),
  /** Blobs that a state needs and that the store did not have. */
  missingBlobs: Type.Array(Type.String()),
});
/** What a backup consists of. It is written last: a backup without it is incomplete. */
export type Manifest = Static<typeof Manifest>;

/** Keys in the target of backups. */
export const places = {
  root: 'backups/',
  start: (id: string): string => `backups/${id}/started`,
  manifest: (id: string): string => `backups/${id}/manifest.json`,
  /** Written by a verification without faults. */
  verified: (id: string): string => `backups/${id}/verified`,
  table: (id: string, table: string): string => `backups/${id}/tables/${table}.zst`,
  blobList: (id: string, number: number): string => `backups/${id}/blobs/${String(number).padStart(6, '0')}.ndjson`,
  /** A blob never changes, so that backups share its copy. */
  blob: (key: string): string => `blobs/${key}`,
};

/** The manifest as text, followed by a line with its own SHA-256. */
export function writeManifest(manifest: Manifest): Buffer {
  const text = JSON.stringify(manifest);
  return Buffer.from(`${text}\n${createHash('sha256').update(text).digest('hex')}\n`);
}

/** Throws BackupError. */
export function readManifest(id: string, bytes: Buffer): Manifest {
  const [text = '', hash, rest, ...more] = bytes.toString('utf8').split('\n');
  const isWhole = rest === '' && more.length === 0 && createHash('sha256').update(text).digest('hex') === hash;
  if (!isWhole) throw new BackupError(`The manifest of backup ${id} is damaged`);
  return parse(Manifest, JSON.parse(text), `The manifest of backup ${id}`);
}

/** Throws BackupError. */
export function readBlobList(key: string, bytes: Buffer): StoredObject[] {
  const lines = bytes.toString('utf8').split('\n');
  if (lines.pop() !== '') throw new BackupError(`${key} is damaged: it ends within a line`);
  return lines.map((line) => {
    let entry: unknown;
    try {
      entry = JSON.parse(line);
    } catch (error) {
      throw new BackupError(`${key} is damaged: a line is not JSON`, { cause: error });
    }
    return parse(StoredObject, entry, key);
  });
}

function parse<S extends typeof Manifest | typeof StoredObject>(schema: S, value: unknown, what: string): Static<S> {
  const result = standard(schema)['~standard'].validate(value);
  if ('value' in result) return result.value as Static<S>;
  const [issue] = result.issues;
  throw new BackupError(
    `${what} is not of format 1, which this release reads: ${issue?.path.join('/') ?? ''} ${issue?.message ?? ''}`.trim(),
  );
}
