import { BackupError } from '../../shared/backup/backup-error.ts';
import { findBackups, openBackup, pruneBackups, readVerification } from '../../shared/backup/backup-list.ts';
import {
  type Backups,
  backupTasks,
  type FailedAttempts,
  hasPassed,
  type KnownBackup,
  readBackupStatus,
  saveBackups,
  unverifiedSince,
} from '../../shared/backup/backup-status.ts';
import { openTarget } from '../../shared/backup/backup-target.ts';
import type { BackupSource } from '../../shared/backup/checked-blob.ts';
import { type Manifest, type ManifestHead, ownerOf } from '../../shared/backup/manifest.ts';
import { backUp } from '../../shared/backup/run-backup.ts';
import type { AppContext } from '../../shared/context.ts';
import type { BackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import { isDue, overdueMs } from '../../shared/platform/config/schedule.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import { createHeldOutgoingRepository } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { createSiteRepository } from '../../shared/platform/site/site-repository.ts';
import type { BackgroundTask } from '../platform/background-task.ts';
import { assertPauseOver } from './attempt-pause.ts';

/** Also the maximum age of facts on pages, e.g. that a command has verified a backup. */
const checkEverySeconds = 60;
const checkMs = 5_000;
const cutOff = 'The run was interrupted';

type Failures = Pick<Backups, 'failure' | 'pruneFailure'>;

interface Clocks {
  /** In ms since 1970. The database's clock by default, because each run may be in another process. */
  readonly now?: () => number | Promise<number>;
  /** The clock of this process, for metrics between two calls of `now`. */
  readonly local?: () => number;
}

/**
 * Backs up on the schedule of HOLDFAST_BACKUP_SCHEDULE, and deletes old backups. A restored database that has not taken over does neither:
 * the location may contain the backups of its original. Backups of other installations do not count, and stay.
 */
export function backUpOnSchedule(
  context: BackupSource & Pick<AppContext, 'config' | 'db' | 'logger' | 'metrics' | 'readOnly'>,
  location: string,
  runs: BackgroundTaskRepository,
  { local = Date.now, now = runs.readClock }: Clocks = {},
): BackgroundTask {
  const { config, logger, readOnly } = context;
  const { keep, recipients, schedule } = config.backup;
  /** Undefined until read. */
  let known: Backups | null | undefined;
  let aheadMs = 0;
  let isHeld = false;
  const observedNow = (): number => local() - aheadMs;
  /** Has no value before the first read, nor at a site that was replaced, which makes no backups. */
  const gauge = (name: string, help: string, read: (backups: Backups | null) => number) =>
    context.metrics.gauge(name, help, () => (known === undefined || readOnly.isFenced ? Number.NaN : read(known)));
  const age = (at: number | null): number =>
    at === null ? Number.POSITIVE_INFINITY : Math.max(observedNow() - at, 0) / 1000;
  gauge(
    'holdfast_backup_last_success_age_seconds',
    'Age of the newest complete backup in HOLDFAST_BACKUP_TO, in seconds; +Inf if there is none.',
    (backups) => age(takenAt(backups?.backups[0], observedNow())),
  );
  gauge(
    'holdfast_backup_overdue_seconds',
    'How long a newer backup has been due by HOLDFAST_BACKUP_SCHEDULE, in seconds; +Inf if the first has failed.',
    (backups) => {
      const newest = takenAt(backups?.backups[0], observedNow());
      // The first backup may take a day.
      if (newest === null) return age(firstSince(backups));
      return overdueMs(schedule, new Date(newest), new Date(observedNow())) / 1000;
    },
  );
  gauge(
    'holdfast_backup_last_verified_age_seconds',
    'Time since a backup in HOLDFAST_BACKUP_TO was last verified without faults or, if none was, age of the first, in seconds.',
    (backups) => {
      const since = backups && unverifiedSince(backups, observedNow());
      return since === null ? Number.NaN : age(since);
    },
  );
  const heads = new Map<string, ManifestHead>();
  const readOwner = async (): Promise<string> => ownerOf((await createSiteRepository(context.db).read()).installation);
  const save = async (backups: readonly KnownBackup[], failures: Failures = {}): Promise<void> =>
    saveBackups(runs, { location, schedule, keep, backups: [...backups], ...failures }, await now());
  const look = async (target: BlobStore, failures?: Failures): Promise<readonly KnownBackup[]> => {
    const backups = await listBackups(target, await readOwner(), { heads, logger });
    await save(backups, failures);
    return backups;
  };
  /** Fails while a kept backup cannot be read. */
  const prune = async (target: BlobStore, present: readonly KnownBackup[], earlier?: FailedAttempts): Promise<void> => {
    const begun = { count: (earlier?.count ?? 0) + 1, at: await now() };
    // Saved in case the process is killed.
    await save(present, { pruneFailure: { ...begun, error: cutOff } });
    try {
      const { backups, blobs, unfinished } = await pruneBackups(target, keep, await readOwner());
      logger.info({ deleted: backups, blobs }, 'old backups deleted');
      if (unfinished !== null)
        logger.warn({ backup: unfinished }, 'unneeded blobs are kept, because this backup may still be running');
    } catch (error) {
      await save(present, { pruneFailure: { ...begun, error: (error as Error).message } }).catch(() => {});
      throw error;
    }
    await look(target);
  };
  const run = async (target: BlobStore, signal: AbortSignal): Promise<void> => {
    const last = (await readBackupStatus(runs)).backups;
    const { failure: earlier, pruneFailure }: Failures = last?.location === location ? last : {};
    const unpruned: Failures = pruneFailure ? { pruneFailure } : {};
    const present = await look(target, earlier ? { ...unpruned, failure: earlier } : unpruned);
    const begunAt = await now();
    const newest = takenAt(present[0], begunAt);
    if (!isDue(schedule, newest === null ? null : new Date(newest), new Date(begunAt))) {
      // Another process or command has made a backup.
      if (earlier) await save(present, unpruned);
      if (!pruneFailure) return;
      assertPauseOver(pruneFailure, begunAt);
      await prune(target, present, pruneFailure);
      return;
    }
    if (earlier) assertPauseOver(earlier, begunAt);
    const begun = { count: (earlier?.count ?? 0) + 1, at: begunAt };
    // Saved in case the process is killed.
    await save(present, { ...unpruned, failure: { ...begun, error: cutOff } });
    const create = async (): Promise<Manifest> => {
      try {
        await context.blobs.check(checkMs);
        return await backUp({ source: context, recipients, signal, target });
      } catch (error) {
        // After an orderly stop, the next process begins at once.
        const failure = signal.aborted ? earlier : { ...begun, error: (error as Error).message };
        await save(present, failure ? { ...unpruned, failure } : unpruned).catch(() => {});
        throw error;
      }
    };
    const { id, installation, missingBlobs, wrongBlobs = [] } = await create();
    const missing = missingBlobs.length;
    const made = await look(target, unpruned);
    logger.info({ backup: id, owner: ownerOf(installation) }, 'backup created');
    if (wrongBlobs.length > 0)
      logger.error(
        { backup: id, keys: wrongBlobs.slice(0, 20), count: wrongBlobs.length },
        'the backup lacks these blobs: none of their copies has the right hash',
      );
    if (missing > 0) logger.error({ backup: id, missing }, 'the blob store lacks blobs that states need');
    await prune(target, made, pruneFailure);
  };
  return {
    name: backupTasks.create,
    everySeconds: checkEverySeconds,
    observe: async () => {
      const { backups } = await readBackupStatus(runs);
      const at = await now();
      [known, aheadMs] = [backups, local() - at];
    },
    run: async (signal) => {
      const wasHeld = isHeld;
      isHeld = await createHeldOutgoingRepository(context.db).isHeld();
      if (isHeld && !wasHeld)
        logger.warn('this database was restored and has not taken over: it makes and deletes no backups');
      if (isHeld) return;
      const target = await openTarget(location, config);
      try {
        await run(target, signal);
      } finally {
        await target.close();
      }
    },
  };
}

/** Returns the time since which the first backup is due; null if it has failed, or if the location has not been examined. */
function firstSince(backups: Backups | null): number | null {
  const { failure, seenAt } = backups ?? {};
  const hasFailed = failure !== undefined && (failure.error !== cutOff || failure.count > 1);
  return hasFailed ? null : (seenAt ?? null);
}

/** Returns null also for a time far in the future: the clock was set back, and the backup must not delay the next one. */
function takenAt(backup: KnownBackup | undefined, now: number): number | null {
  const at = backup ? Date.parse(backup.takenAt) : Number.NaN;
  return hasPassed(at, now) ? at : null;
}

/** The complete backups of an installation, newest first, without damaged ones. `heads` caches read manifests, which never change. */
async function listBackups(
  target: BlobStore,
  owner: string,
  { heads, logger }: { readonly heads: Map<string, ManifestHead>; readonly logger: Logger },
): Promise<KnownBackup[]> {
  const complete = (await findBackups(target)).filter((backup) => backup.isComplete && backup.owner === owner);
  const known: KnownBackup[] = [];
  for (const backup of complete.reverse()) {
    const head = heads.get(backup.id) ?? (await openBackup(target, backup.id).catch(skipDamaged(logger)));
    if (head === null) continue;
    heads.set(head.id, head);
    const { blobs, bytes, finishedAt, id, missingBlobs, recipients, takenAt, wrongBlobs = [] } = head;
    known.push({
      ...{ id, takenAt, finishedAt, bytes, blobs: blobs.count, missingBlobs: missingBlobs.length + wrongBlobs.length },
      isEncrypted: recipients.length > 0,
      verifiedAt: await readVerification(target, backup),
    });
  }
  for (const id of heads.keys()) if (!known.some((backup) => backup.id === id)) heads.delete(id);
  return known;
}

function skipDamaged(logger: Logger): (error: unknown) => null {
  return (error) => {
    if (!(error instanceof BackupError)) throw error;
    logger.error({ err: error }, 'a backup is damaged');
    return null;
  };
}
