import { findBlobReader } from '../../shared/backup/blob-reader.ts';
import type { AppContext } from '../../shared/context.ts';
import { inParallel } from '../../shared/platform/blobs/in-parallel.ts';
import { createCopyQueueRepository } from '../../shared/platform/blobs/second/copy-queue-repository.ts';
import { settleCopy } from '../../shared/state/checkpoints/settle-copy.ts';
import type { BackgroundTask } from '../platform/background-task.ts';
import { findDeletionBar, mayGoOnDeleting } from '../platform/store-deletions.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';

const batchSize = 200;
const pageSize = 1_000;
const compareEverySeconds = 24 * 3600;
/** Blobs of the audit log have no rows. */
const rowlessPrefix = 'audit/';

const copyTask = 'copy-to-second-store';

type Mirror = NonNullable<AppContext['mirror']>;

/** The tasks keep the second store equal to the main one. */
export function secondStoreTasks(context: AppContext, mirror: Mirror): BackgroundTask[] {
  return [
    { name: copyTask, run: (signal) => copyDue(context, mirror, signal) },
    // Finds blobs that were written before the second store existed, or by a process without the setting.
    {
      name: 'compare-second-store',
      everySeconds: compareEverySeconds,
      run: (signal) => noteAbsent(context, mirror, signal),
    },
  ];
}

/**
 * Copies or deletes the recorded blobs, oldest first. Postpones blobs that fail, and deletions while another copy of the database owns the
 * stores or another site has taken over. Throws if a store cannot be reached.
 */
async function copyDue(context: AppContext, mirror: Mirror, signal: AbortSignal): Promise<number> {
  const { blobRows, db, logger, metrics } = context;
  const queue = createCopyQueueRepository(db);
  let done = 0;
  for (;;) {
    const due = await queue.listDue(batchSize);
    const mayDelete = due.some(({ isDeletion }) => isDeletion) && (await findDeletionBar(context)) === null;
    await inParallel(due, signal, async (blob) => {
      if (blob.isDeletion && !(mayDelete && (await mayGoOnDeleting(context)))) {
        await queue.postpone(blob.key);
        return;
      }
      try {
        if (await settleCopy({ ...mirror, blobRows }, blob)) await repairCopy(context, blob.key);
      } catch (error) {
        for (const store of [mirror.main, mirror.second]) await assertStoreReachable(store, error);
        await queue.postpone(blob.key);
        metrics.tasksPostponed.labels(copyTask).inc();
        logger.warn({ key: blob.key, err: error }, 'a blob could not be copied to the other store');
        return;
      }
      await queue.remove(blob);
      done++;
    });
    if (due.length < batchSize) return done;
  }
}

/** Replaces a copy that does not have its hash in the database. If neither copy has it, the scrub reports this. */
async function repairCopy(context: AppContext, key: string): Promise<void> {
  const { copies } = context;
  if (await copies.isSame(key)) return;
  const read = await findBlobReader(context, key);
  if (read !== null) await copies.repairAll(read);
}

/** Records all blobs that the second store lacks. */
async function noteAbsent({ blobRows, db }: AppContext, mirror: Mirror, signal: AbortSignal): Promise<number> {
  const { main, second } = mirror;
  const queue = createCopyQueueRepository(db);
  let noted = 0;
  const note = async (keys: readonly string[]): Promise<void> => {
    signal.throwIfAborted();
    const absent = keys.length === 0 ? [] : await second.findAbsent(keys);
    if (absent.length > 0) await queue.addAll(absent);
    noted += absent.length;
  };
  for (let after: string | null | undefined; after !== null; ) {
    const page: Awaited<ReturnType<typeof main.list>> = await main.list(rowlessPrefix, after);
    await note(page.blobs.map(({ key }) => key));
    after = page.next;
  }
  for (let after = ''; ; ) {
    const rows = await blobRows.listAfter(after, pageSize);
    await note(rows.map(({ key }) => key));
    if (rows.length < pageSize) return noted;
    after = rows.at(-1)?.key ?? '';
  }
}
