import { Type } from 'typebox';
import { Manifest } from '../../shared/backup/manifest.ts';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { ManifestStack } from '../moving/archive/archive-layout.ts';
import { Count, CountOrNull, Flag, Text, TextOrNull, Texts, TimeOrNull } from './output-types.ts';

const PlannedStack = Type.Object({
  source: Text,
  project: TextOrNull,
  stack: Text,
  action: Text,
  notes: Texts,
  quarantine: TextOrNull,
  versions: Count,
  previews: Count,
  imported: Count,
  bytes: Count,
  resources: Count,
  secretsProvider: TextOrNull,
});
const ImportedStack = Type.Object({
  stack: Text,
  versions: Count,
  previews: Count,
  leftOut: Texts,
  quarantine: TextOrNull,
});
const VerifiedStack = Type.Object({
  source: Text,
  versions: Count,
  previews: Count,
  bytes: Count,
  problems: Texts,
  leftOut: Texts,
});
const RolledBackStack = Type.Object({ source: Text, action: Text, versions: Count, reason: TextOrNull });
const FolderStack = Type.Object({ stack: Text, isComplete: Flag, versions: Count, reencrypted: Count, notes: Texts });

/** By the words of the command. */
export const movingOutputs = {
  'backup create': Type.Object({ ...Manifest.properties, owner: Text }),
  'backup list': Type.Object({
    backup: Text,
    /** Identifies the installation. Null: the backup is being deleted. */
    owner: TextOrNull,
    isComplete: Flag,
    takenAt: Type.Optional(Text),
    finishedAt: Type.Optional(Text),
    release: Type.Optional(Text),
    blobs: Type.Optional(Type.Object({ count: Count, bytes: Count })),
    bytes: Type.Optional(Count),
    recipients: Type.Optional(Texts),
    error: Type.Optional(Text),
  }),
  'backup verify': Type.Object({ backup: Text, problems: Texts }),
  'backup restore': Type.Object({
    backup: Text,
    takenAt: Text,
    missingMasterKeys: Texts,
    missingBlobs: Texts,
    unsureBlobs: Texts,
    endedUpdates: Count,
    writtenAfter: Nullable(
      Type.Array(
        Type.Object({
          stack: Text,
          change: Text,
          restoredVersion: CountOrNull,
          oldVersion: CountOrNull,
          changedAt: TextOrNull,
        }),
      ),
    ),
  }),
  'backup prune': Type.Object({ backups: Texts, blobs: Count, locked: Texts, unfinished: TextOrNull }),
  'blobs copy': Type.Object({ blobs: Count, copied: Count, bytes: Count }),
  'blobs verify': Type.Object({
    compared: Count,
    faults: Type.Array(Type.Object({ key: Text, fault: Text })),
    lost: Texts,
  }),
  'blobs status': Type.Object({ location: Text, other: TextOrNull, phase: Text, verifiedAt: TimeOrNull }),
  'bundle status': Type.Object({
    location: Text,
    stacks: Count,
    behind: Count,
    behindSeconds: Count,
    errors: Type.Array(Type.Object({ stack: Text, error: Text })),
    unfinishedImports: Texts,
  }),
  'bundle return': Type.Object({
    stacks: Type.Array(Type.Object({ stack: Text, action: Text, versions: Count, reason: Text })),
  }),
  /** Without --apply, the plan; otherwise the imported, compared or deleted stacks. */
  import: Type.Union([
    Type.Object({
      format: Type.Literal(1),
      from: Text,
      organization: Text,
      strays: Texts,
      stacks: Type.Array(PlannedStack),
    }),
    Type.Object({
      stacks: Type.Array(Type.Union([ImportedStack, VerifiedStack, RolledBackStack])),
      /** Why stacks are missing. */
      gaps: Texts,
    }),
  ]),
  /** The export to a folder, or to an archive. */
  export: Type.Union([
    Type.Object({
      to: Text,
      versions: Count,
      previews: Count,
      bytes: Count,
      added: Count,
      stacks: Type.Array(ManifestStack),
      missing: Type.Array(Type.Object({ stack: Text, reason: Text })),
      remainder: Type.Record(Text, Texts),
    }),
    Type.Object({ stacks: Type.Array(FolderStack) }),
  ]),
};
