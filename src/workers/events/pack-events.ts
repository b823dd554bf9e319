import { setTimeout as sleep } from 'node:timers/promises';
import type { AppContext } from '../../shared/context.ts';
import { EventPacker, type PackedSegment, type SegmentLimits } from '../../shared/events/event-packer.ts';
import { createPackingRepository, type DueUpdate, type PackingQueue } from '../../shared/events/packing-repository.ts';
import { assertStoreReachable } from '../platform/bad-items.ts';

const batchSize = 100;
/** Minimum charge per update of the backlog, to account for the fixed cost of its statements. */
const minChargeBytes = 4 * 1024;

type Parts = Pick<
  AppContext,
  'blobs' | 'config' | 'db' | 'documents' | 'eventSegments' | 'events' | 'figures' | 'logger' | 'metrics'
>;

/** Packs the events of updates that ended long enough ago. Safe on any number of replicas. Returns how many it finished. */
export function packRecentEvents(context: Parts, signal?: AbortSignal, limits?: SegmentLimits): Promise<number> {
  return packDue(context, 'recent', { pace: async () => {}, signal, limits });
}

/**
 * Packs the events of updates from before events were packed, oldest first, at no more than the configured rate. Returns how many it
 * finished.
 */
export async function packEventBacklog(context: Parts, signal?: AbortSignal, limits?: SegmentLimits): Promise<number> {
  const { backlogBytesPerSecond } = context.config.eventPacking;
  if (backlogBytesPerSecond === 0) return 0;
  let readyAt = performance.now();
  const pace = async (bytes: number): Promise<void> => {
    readyAt = Math.max(readyAt, performance.now()) + (bytes / backlogBytesPerSecond) * 1000;
    const pauseMs = Math.max(0, readyAt - performance.now());
    await sleep(pauseMs, undefined, signal ? { signal } : {}).catch(() => {});
  };
  return packDue(context, 'backlog', { pace, signal, limits });
}

async function packDue(
  context: Parts,
  queue: PackingQueue,
  {
    limits,
    pace,
    signal,
  }: {
    /** Waits after this many bytes were packed. */
    readonly pace: (bytes: number) => Promise<void>;
    readonly signal: AbortSignal | undefined;
    readonly limits: SegmentLimits | undefined;
  },
): Promise<number> {
  const { config, db, figures, logger, metrics } = context;
  const packing = createPackingRepository(db);
  const packer = new EventPacker({ ...context, ...(limits ? { limits } : {}) });
  let packed = 0;
  let last: DueUpdate | null = null;
  for (;;) {
    if (await packing.hasOlderReaders()) {
      logger.warn(
        'events are not packed: a process of an earlier release, or another program without an application_name, uses the database under the same user',
      );
      return packed;
    }
    const due: readonly DueUpdate[] = await packing.listDue(queue, config.eventPacking.delaySeconds, last, batchSize);
    for (const update of due) {
      let bytes = 0;
      const onSegment = async ({ events, rawBytes, storedBytes }: PackedSegment): Promise<void> => {
        metrics.eventsPacked.inc(events);
        metrics.eventBytesPacked.labels('raw').inc(rawBytes);
        metrics.eventBytesPacked.labels('stored').inc(storedBytes);
        bytes += rawBytes;
        await pace(rawBytes);
      };
      // Nothing depends on them: events are packed without.
      await figures
        .keep(update.id)
        .catch((error: unknown) =>
          logger.warn({ updateId: update.id, err: error }, 'sweep: the figures of an ended update are missing'),
        );
      try {
        if (await packer.pack(update.id, onSegment, signal)) packed++;
      } catch (error) {
        await assertStoreReachable(context.blobs, error);
        metrics.maintenancePostponed.labels('pack-events').inc();
        logger.error({ updateId: update.id, err: error }, 'sweep: events of an ended update could not be packed');
      }
      if (signal?.aborted) return packed;
      if (bytes < minChargeBytes) await pace(minChargeBytes - bytes);
      last = update;
    }
    if (due.length < batchSize) return packed;
  }
}
