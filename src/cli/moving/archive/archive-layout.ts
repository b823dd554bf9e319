import { type Static, Type } from 'typebox';
import { Nullable } from '../../../shared/platform/schema/standard-schema.ts';

/** The table of contents of an archive. Written first, because it has the keys, and again, as complete, after all other files. */
export const manifestFile = 'holdfast-archive.json';

/** Exists while an export writes to the archive. */
export const runFile = 'holdfast-archive-run.json';

export const stacksFolder = 'stacks/';

export const archiveFormat = 1;

/** The format of ids of the exporting server: they cannot lead out of the archive, and Postgres can store them. */
const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const Id = Type.String({ pattern: `^${uuid}$` });
const Name = Type.String({ pattern: '^[^\\u0000]*$' });
const Version = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });

const ArchivedFile = Type.Object({
  name: Type.String({ pattern: `^${stacksFolder}${uuid}/[0-9a-z-]+(\\.[a-z]+)+$` }),
  sha256: Type.String(),
  bytes: Type.Integer(),
});
export type ArchivedFile = Static<typeof ArchivedFile>;

/** Encrypted for age recipients, or for a passphrase if it has a salt. */
const EncryptedKey = Type.Object({
  id: Type.String(),
  recipients: Type.Array(Type.String()),
  salt: Nullable(Type.String()),
  encrypted: Type.String(),
});
export type EncryptedKey = Static<typeof EncryptedKey>;

const Counts = Type.Object({
  versions: Type.Integer(),
  previews: Type.Integer(),
  events: Type.Integer(),
  /** Total size of the files. */
  bytes: Type.Integer(),
});
export type ArchiveCounts = Static<typeof Counts>;

export const ManifestStack = Type.Object({
  id: Id,
  project: Name,
  stack: Name,
  index: ArchivedFile,
  counts: Counts,
  notes: Type.Array(Type.String()),
});
export type ManifestStack = Static<typeof ManifestStack>;

/** By name. None of these objects of an organization is in the archive. */
const Remainder = Type.Record(Type.String(), Type.Array(Type.String()));
export type Remainder = Static<typeof Remainder>;

export const Manifest = Type.Object({
  format: Type.Literal(archiveFormat),
  /** False while an export writes to the archive. */
  isComplete: Type.Boolean(),
  release: Type.String(),
  /** The installation that made the archive. */
  installation: Type.String(),
  organization: Type.String(),
  exportedAt: Type.String(),
  keys: Type.Array(EncryptedKey),
  stacks: Type.Array(ManifestStack),
  /** Stacks that could not be exported. */
  missing: Type.Array(Type.Object({ stack: Type.String(), reason: Type.String() })),
  remainder: Remainder,
  /** SHA-256 of the members above, as JSON. */
  sha256: Type.String(),
});
export type Manifest = Static<typeof Manifest>;

const Page = Type.Object({ ...ArchivedFile.properties, ...Counts.properties });
export type ArchivePage = Static<typeof Page>;

export const StackIndex = Type.Object({
  id: Id,
  project: Type.String(),
  stack: Type.String(),
  /** JSON text, as the stack has it. */
  tags: Type.String(),
  formerNames: Type.Array(Type.Object({ project: Type.String(), stack: Type.String() })),
  /** Whether an update was running when the stack was exported. */
  isBusy: Type.Boolean(),
  /** The state of a stack without versions. */
  initialState: Nullable(ArchivedFile),
  /** Ended updates with a version, oldest first. */
  versions: Type.Array(Page),
  /** Ended previews. */
  previews: Type.Array(Page),
});
export type StackIndex = Static<typeof StackIndex>;

const ArchivedUpdate = Type.Object({
  id: Id,
  /** Order of creation within the stack. */
  number: Type.Integer(),
  kind: Type.String(),
  /** Null for a preview. */
  version: Nullable(Version),
  /** The version that it began with. */
  baseVersion: Version,
  status: Type.String(),
  endReason: Nullable(Type.String()),
  message: Type.String(),
  // JSON texts, as they are stored.
  ...{ environment: Type.String(), config: Type.String(), resourceChanges: Type.String() },
  requestedBy: Nullable(Type.String()),
  startedAt: Type.String(),
  endedAt: Type.String(),
  state: Nullable(ArchivedFile),
  /** Why the state is missing. */
  stateFault: Nullable(Type.String()),
  /** The journal entries that the state lacks. */
  stateWarning: Type.Optional(Type.String()),
  events: Nullable(ArchivedFile),
  /** Why the events are missing, although the update had some. */
  eventsFault: Type.Optional(Type.String()),
});
export type ArchivedUpdate = Static<typeof ArchivedUpdate>;

export const PageContent = Type.Object({
  updates: Type.Array(ArchivedUpdate),
  /** Id of the key that encrypts the secrets. */
  key: Type.Optional(Type.String()),
});

export function indexFile(stackId: string): string {
  return `${stacksFolder}${stackId}/stack.json`;
}

/** The page begins with this update. */
export function pageFile(stackId: string, of: 'versions' | 'previews', at: number): string {
  return `${stacksFolder}${stackId}/${of}-${String(at).padStart(6, '0')}.json.zst`;
}

export function stateFile(stackId: string, updateId: string): string {
  return `${stacksFolder}${stackId}/${updateId}.state.json.zst`;
}

export function eventsFile(stackId: string, updateId: string): string {
  return `${stacksFolder}${stackId}/${updateId}.events.jsonl.zst`;
}
