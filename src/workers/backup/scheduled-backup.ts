import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { listBlobs } from '../../shared/backup/backup-content.ts';
import { findBackups, openBackup, pruneBackups, readVerification } from '../../shared/backup/backup-list.ts';
import { openTarget } from '../../shared/backup/backup-target.ts';
import { backUp } from '../../shared/backup/run-backup.ts';
import type { AppContext } from '../../shared/context.ts';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import { isDue } from '../../shared/platform/config/schedule.ts';
import type { RunRepository } from '../../shared/platform/maintenance/run-repository.ts';
import type { Maintenance } from '../platform/maintenance.ts';

const taskName = 'back-up';
const lookEverySeconds = 300;

const Times = Type.Object({
  /** When the newest backup was made, in ms since 1970; null: there is none. */
  takenAt: Type.Union([Type.Number(), Type.Null()]),
  /** When one was last verified without faults or, if none was, when the oldest was made. */
  verifiedAt: Type.Union([Type.Number(), Type.Null()]),
});
type Times = Static<typeof Times>;

/** Creates the task that backs up as HOLDFAST_BACKUP_SCHEDULE says, and deletes old backups. */
export function backUpOnSchedule(
  context: Pick<AppContext, 'blobs' | 'config' | 'db' | 'logger' | 'metrics'>,
  place: string,
  runs: RunRepository,
): Maintenance {
  const { blobs, config, db, logger, metrics } = context;
  const { keep, schedule } = config.backup;
  let times: Times = { takenAt: null, verifiedAt: null };
  const age = (at: number | null): number => (at === null ? Number.POSITIVE_INFINITY : (Date.now() - at) / 1000);
  metrics.gauge(
    'holdfast_backup_last_success_age_seconds',
    'Age of the newest complete backup in HOLDFAST_BACKUP_TO, in seconds; +Inf if there is none.',
    () => age(times.takenAt),
  );
  metrics.gauge(
    'holdfast_backup_last_verified_age_seconds',
    'Time since a backup in HOLDFAST_BACKUP_TO was last verified without faults or, if none was, age of the oldest, in seconds.',
    () => age(times.verifiedAt),
  );
  const run = async (target: BlobStore, signal: AbortSignal): Promise<void> => {
    const before = await readTimes(target);
    if (isDue(schedule, before.takenAt === null ? null : new Date(before.takenAt))) {
      const { id, missingBlobs } = await backUp({ blobs, db, signal, target });
      const missing = missingBlobs.length;
      // Before the prune, which fails while a backup that is kept cannot be read.
      await runs.saveResult(taskName, JSON.stringify(await readTimes(target)));
      if (missing > 0) logger.error({ backup: id, missing }, 'the blob store lacks blobs that states need');
      const deleted = await pruneBackups(target, keep, async function* (manifest) {
        for await (const { key } of listBlobs(target, manifest)) yield key;
      });
      logger.info({ backup: id, deleted: deleted.backups }, 'backup created');
    }
    await runs.saveResult(taskName, JSON.stringify(await readTimes(target)));
  };
  return {
    name: taskName,
    everySeconds: lookEverySeconds,
    observe: async () => {
      const saved: unknown = JSON.parse((await runs.findResult(taskName)) ?? 'null');
      if (Value.Check(Times, saved)) times = saved;
    },
    run: async (signal) => {
      const target = await openTarget(place, config);
      try {
        await run(target, signal);
      } finally {
        await target.close();
      }
    },
  };
}

async function readTimes(target: BlobStore): Promise<Times> {
  const backups = (await findBackups(target)).filter(({ isComplete }) => isComplete);
  const newest = backups.at(-1);
  const takenAt = newest ? Date.parse((await openBackup(target, newest.id)).takenAt) : null;
  const oldest = backups[0];
  let verifiedAt: number | null = null;
  for (const backup of backups) {
    const at = await readVerification(target, backup);
    if (at !== null && (verifiedAt === null || at > verifiedAt)) verifiedAt = at;
  }
  if (verifiedAt === null && oldest) verifiedAt = Date.parse((await openBackup(target, oldest.id)).takenAt);
  return { takenAt, verifiedAt };
}
