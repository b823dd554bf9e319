import type { AppContext } from '../../shared/context.ts';
import { EventPacker, type PackedSegment, type SegmentLimits } from '../../shared/events/event-packer.ts';
import { createPackingRepository, type DueUpdate } from '../../shared/events/packing-repository.ts';
import { assertStoreReachable } from '../platform/bad-items.ts';

const batchSize = 100;

type Parts = Pick<
  AppContext,
  'blobs' | 'config' | 'db' | 'documents' | 'eventSegments' | 'events' | 'figures' | 'logger' | 'metrics'
>;

/** Packs the events of updates that ended long enough ago. Safe on any number of replicas. Returns how many it finished. */
export async function packEvents(context: Parts, signal?: AbortSignal, limits?: SegmentLimits): Promise<number> {
  const { config, db, figures, logger, metrics } = context;
  const packing = createPackingRepository(db);
  const packer = new EventPacker({ ...context, ...(limits ? { limits } : {}) });
  let packed = 0;
  let last: DueUpdate | null = null;
  for (;;) {
    const due: readonly DueUpdate[] = await packing.listDue(config.eventPacking.delaySeconds, last, batchSize);
    for (const update of due) {
      const onSegment = async ({ events, rawBytes, storedBytes }: PackedSegment): Promise<void> => {
        metrics.eventsPacked.inc(events);
        metrics.eventBytesPacked.labels('raw').inc(rawBytes);
        metrics.eventBytesPacked.labels('stored').inc(storedBytes);
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
      last = update;
    }
    if (due.length < batchSize) return packed;
  }
}
