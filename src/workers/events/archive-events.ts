import type { AppContext } from '../../shared/context.ts';
import { createArchivingRepository, type DueUpdate } from '../../shared/events/archiving-repository.ts';
import { UnavailableError } from '../../shared/platform/errors/errors.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { type ArchivedSegment, EventArchiver, type SegmentLimits } from './event-archiver.ts';

const batchSize = 100;

type Parts = Pick<
  AppContext,
  'blobs' | 'config' | 'db' | 'documents' | 'eventSegments' | 'events' | 'statistics' | 'logger' | 'metrics'
>;

/** Archives the events of updates that ended long enough ago. Safe on any number of replicas. */
export async function archiveEvents(context: Parts, signal?: AbortSignal, limits?: SegmentLimits): Promise<number> {
  const { config, db, statistics, logger, metrics } = context;
  const archiving = createArchivingRepository(db);
  const archiver = new EventArchiver({ ...context, ...(limits ? { limits } : {}) });
  let archived = 0;
  let last: DueUpdate | null = null;
  for (;;) {
    const due: readonly DueUpdate[] = await archiving.listDue(config.eventArchiving.delaySeconds, last, batchSize);
    for (const update of due) {
      const onSegment = async ({ events, rawBytes, storedBytes }: ArchivedSegment): Promise<void> => {
        metrics.eventsArchived.inc(events);
        metrics.eventBytesArchived.labels('raw').inc(rawBytes);
        metrics.eventBytesArchived.labels('stored').inc(storedBytes);
      };
      last = update;
      try {
        await statistics.keep(update.id);
      } catch (error) {
        // Once its events are archived, the update is never examined again.
        await assertStoreReachable(context.blobs, error);
        logger.warn({ updateId: update.id, err: error }, 'task: the statistics of an ended update are missing');
        if (error instanceof UnavailableError && !update.isOld) {
          metrics.tasksPostponed.labels('archive-events').inc();
          continue;
        }
      }
      try {
        if (await archiver.pack(update.id, onSegment, signal)) archived++;
      } catch (error) {
        await assertStoreReachable(context.blobs, error);
        metrics.tasksPostponed.labels('archive-events').inc();
        logger.error({ updateId: update.id, err: error }, 'task: events of an ended update could not be archived');
      }
      if (signal?.aborted) return archived;
    }
    if (due.length < batchSize) return archived;
  }
}
