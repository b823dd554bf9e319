import { Value } from 'typebox/value';
import type { AppContext } from '../../shared/context.ts';
import type { BackgroundTaskRepository } from '../../shared/platform/background-tasks/background-task-repository.ts';
import {
  beginReconcile,
  ReconcileCounts,
  ReconcilePosition,
  reconcile,
} from '../../shared/state/blobs/reconcile-blobs.ts';
import type { BackgroundTask } from '../platform/background-task.ts';

const reconcileName = 'reconcile';

/**
 * Compares all blobs with the database every `config.reconcile.everySeconds`. Any process can resume where another one stopped. Every
 * process reports the result of the last complete run.
 */
export function reconcileInSlices(
  context: Pick<AppContext, 'blobRows' | 'blobs' | 'config' | 'logger' | 'metrics'>,
  runs: BackgroundTaskRepository,
): BackgroundTask {
  const { config, logger, metrics } = context;
  let lastCounts: ReconcileCounts | null = null;
  metrics.gauge(
    'holdfast_blobs_missing',
    'Blobs that a state needs and the store does not have, as of the last reconcile run.',
    () => lastCounts?.missing ?? 0,
  );
  metrics.gauge(
    'holdfast_blobs_unknown',
    'Objects without a database row that the last reconcile run left alone.',
    () => lastCounts?.held ?? 0,
  );
  return {
    name: reconcileName,
    everySeconds: config.reconcile.everySeconds,
    observe: async () => {
      const counts: unknown = JSON.parse((await runs.findResult(reconcileName)) ?? 'null');
      lastCounts = Value.Check(ReconcileCounts, counts) ? counts : null;
    },
    run: async (signal, { holder, position }) => {
      // Another release may have saved the position. Without its limit, objects would be left to the sweep that it must not delete.
      const reached: unknown = JSON.parse(position ?? 'null');
      const start = Value.Check(ReconcilePosition, reached) ? reached : await beginReconcile(context);
      let adopted = start.counts.adopted;
      const end = await reconcile(context, start, {
        objectsPerSecond: config.reconcile.objectsPerSecond,
        signal,
        onPage: (next) => {
          metrics.blobsAdopted.inc(next.counts.adopted - adopted);
          adopted = next.counts.adopted;
          return runs.savePosition(reconcileName, holder, JSON.stringify(next));
        },
      });
      if (end.pass !== 'done') return;
      await runs.saveResult(reconcileName, JSON.stringify(end.counts));
      logger.info(end.counts, 'blob store and database compared');
    },
  };
}
