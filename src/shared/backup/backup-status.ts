import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { ScheduledTaskRepository } from '../platform/maintenance/scheduled-task-repository.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

/** Names of the tasks that back up and verify. */
export const backupTasks = { create: 'back-up', verify: 'verify-backup' } as const;

const KnownBackup = Type.Object({
  id: Type.String(),
  takenAt: Type.String(),
  finishedAt: Type.String(),
  /** Stored bytes of tables and blobs. Backups share blobs. */
  bytes: Type.Number(),
  blobs: Type.Number(),
  missingBlobs: Type.Number(),
  isEncrypted: Type.Boolean(),
  /** When it was last verified without faults, in ms since 1970; null: never. */
  verifiedAt: Nullable(Type.Number()),
});
export type KnownBackup = Static<typeof KnownBackup>;

const FailedAttempts = Type.Object({
  count: Type.Integer(),
  /** When the last one began, in ms since 1970. */
  at: Type.Number(),
  error: Type.String(),
});
export type FailedAttempts = Static<typeof FailedAttempts>;

const Backups = Type.Object({
  location: Type.String(),
  schedule: Type.String(),
  keep: Type.Number(),
  /** The complete ones, newest first. */
  backups: Type.Array(KnownBackup),
  /** Attempts since the last backup that failed, or that were cut off; absent: there is none. */
  failure: Type.Optional(FailedAttempts),
});
/** The backups that the task has found in its location. */
export type Backups = Static<typeof Backups>;

const LastVerification = Type.Object({
  /** When the task last looked, in ms since 1970. */
  at: Type.Number(),
  /** The backup that was verified; null: none. */
  backup: Nullable(Type.String()),
  /** Empty: no faults. */
  problems: Type.Array(Type.String()),
  /** Why backups are not verified here; null: they are. */
  skipped: Nullable(Type.String()),
});
/** What the task that verifies has done last. */
export type LastVerification = Static<typeof LastVerification>;

/** What the tasks have saved. Null: nothing yet. */
export async function readBackupStatus(
  runs: ScheduledTaskRepository,
): Promise<{ backups: Backups | null; verification: LastVerification | null }> {
  const [backups, verification] = await Promise.all([
    runs.findResult(backupTasks.create),
    runs.findResult(backupTasks.verify),
  ]);
  return { backups: read(Backups, backups), verification: read(LastVerification, verification) };
}

/**
 * Notes that a backup in the location is without faults. Pages and metrics show it at once: the task that looks into the location may be making a
 * backup for hours.
 */
export async function noteVerified(
  runs: ScheduledTaskRepository,
  { at, id, location }: { readonly at: number; readonly id: string; readonly location: string },
): Promise<void> {
  const { backups: found } = await readBackupStatus(runs);
  if (found?.location !== location) return;
  const backups = found.backups.map((each) => (each.id === id ? { ...each, verifiedAt: at } : each));
  await runs.saveResult(backupTasks.create, JSON.stringify({ ...found, backups } satisfies Backups));
}

function read<S extends typeof Backups | typeof LastVerification>(schema: S, text: string | null): Static<S> | null {
  const value: unknown = JSON.parse(text ?? 'null');
  return Value.Check(schema, value) ? (value as Static<S>) : null;
}
