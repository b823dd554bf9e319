import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { BackgroundTaskRepository } from '../platform/background-tasks/background-task-repository.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

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
  /** The last verification without faults, in ms since 1970; null for never. */
  verifiedAt: Nullable(Type.Number()),
});
export type KnownBackup = Static<typeof KnownBackup>;

const FailedAttempts = Type.Object({
  count: Type.Integer(),
  /** In ms since 1970. */
  at: Type.Number(),
  error: Type.String(),
});
export type FailedAttempts = Static<typeof FailedAttempts>;

const Backups = Type.Object({
  location: Type.String(),
  schedule: Type.String(),
  keep: Type.Number(),
  /** Complete ones, newest first. */
  backups: Type.Array(KnownBackup),
  /** The last verification without faults of any backup ever found there, in ms since 1970. */
  lastVerifiedAt: Type.Optional(Type.Number()),
  /** When the oldest backup ever found there was made, in ms since 1970. */
  firstTakenAt: Type.Optional(Type.Number()),
  /** When the task first examined the location, in ms since 1970. */
  seenAt: Type.Optional(Type.Number()),
  /** Failed or interrupted attempts since the last backup. */
  failure: Type.Optional(FailedAttempts),
  /** Failed or interrupted attempts since old backups were last deleted completely. */
  pruneFailure: Type.Optional(FailedAttempts),
});
export type Backups = Static<typeof Backups>;

const LastVerification = Type.Object({
  /** When the task last ran, in ms since 1970; null for never. */
  at: Nullable(Type.Number()),
  /** Null for none. */
  backup: Nullable(Type.String()),
  problems: Type.Array(Type.String()),
  /** Why backups are not verified here; null if they are. */
  skipped: Nullable(Type.String()),
  /** Later attempts that could not run. */
  failure: Type.Optional(FailedAttempts),
});
export type LastVerification = Static<typeof LastVerification>;

/** Null if nothing is saved yet. */
export async function readBackupStatus(
  runs: BackgroundTaskRepository,
): Promise<{ backups: Backups | null; verification: LastVerification | null }> {
  const [backups, verification] = await Promise.all([
    runs.findResult(backupTasks.create),
    runs.findResult(backupTasks.verify),
  ]);
  return { backups: read(Backups, backups), verification: read(LastVerification, verification) };
}

/** After a failover, the clock may be slightly behind the previous one. */
const clockToleranceMs = 300_000;

/** Whether a saved time is plausible: one far in the future means that the clock was set back. */
export function hasPassed(at: number, now: number): boolean {
  return at <= now + clockToleranceMs;
}

/** Returns the last verification without faults or, without one, the time of the first backup. */
export function unverifiedSince({ firstTakenAt, lastVerifiedAt }: Backups, now: number): number | null {
  return [lastVerifiedAt, firstTakenAt].find((at) => at !== undefined && hasPassed(at, now)) ?? null;
}

/** Keeps saved data about deleted backups, except verifications far in the future. */
export async function saveBackups(
  runs: BackgroundTaskRepository,
  found: Omit<Backups, 'lastVerifiedAt' | 'firstTakenAt' | 'seenAt'>,
  now: number,
): Promise<void> {
  const { backups: saved } = await readBackupStatus(runs);
  const earlier = saved?.location === found.location ? saved : null;
  const marks = [earlier?.lastVerifiedAt ?? [], found.backups.map(({ verifiedAt }) => verifiedAt ?? [])].flat(2);
  const verified = marks.filter((at) => hasPassed(at, now));
  const taken = [earlier?.firstTakenAt ?? [], found.backups.map(({ takenAt }) => Date.parse(takenAt))].flat();
  const seenAt = earlier?.seenAt;
  const history = {
    seenAt: seenAt !== undefined && hasPassed(seenAt, now) ? seenAt : now,
    ...(verified.length > 0 ? { lastVerifiedAt: Math.max(...verified) } : {}),
    ...(taken.length > 0 ? { firstTakenAt: Math.min(...taken) } : {}),
  };
  await runs.saveResult(backupTasks.create, JSON.stringify({ ...found, ...history } satisfies Backups));
}

/** Pages and metrics show the verification at once: the task that examines the location may be busy with a backup for hours. */
export async function noteVerified(
  runs: BackgroundTaskRepository,
  { at, id, location }: { readonly at: number; readonly id: string; readonly location: string },
): Promise<void> {
  const { backups: found } = await readBackupStatus(runs);
  if (found?.location !== location || !found.backups.some((each) => each.id === id)) return;
  const backups = found.backups.map((each) => (each.id === id ? { ...each, verifiedAt: at } : each));
  const lastVerifiedAt = Math.max(at, found.lastVerifiedAt ?? at);
  await runs.saveResult(backupTasks.create, JSON.stringify({ ...found, backups, lastVerifiedAt } satisfies Backups));
}

function read<S extends typeof Backups | typeof LastVerification>(schema: S, text: string | null): Static<S> | null {
  const value: unknown = JSON.parse(text ?? 'null');
  return Value.Check(schema, value) ? (value as Static<S>) : null;
}
