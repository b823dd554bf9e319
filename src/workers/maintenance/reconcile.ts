import { beginReconcile, type ReconcilePlace, reconcile } from '../../shared/checkpoints/reconcile-blobs.ts';
import type { AppContext } from '../../shared/context.ts';
import type { RunRepository } from '../../shared/platform/maintenance/run-repository.ts';
import type { Maintenance } from './maintenance.ts';

/** Name of its runs. */
export const reconcileName = 'reconcile';

/**
 * The reconciling job: a round over all blobs every `config.reconcile.everySeconds`, which whatever process goes on with
 * where another left it. Every process shows what the last whole round found.
 */
export function reconcileInTurns(
  context: Pick<AppContext, 'blobRows' | 'blobs' | 'config' | 'logger' | 'metrics'>,
  runs: RunRepository,
): Maintenance {
  const { config, logger, metrics } = context;
  let lastCounts: { missing?: number; held?: number } = {};
  metrics.gauge(
    'holdfast_blobs_missing',
    'Blobs that a state needs and the store does not have, as of the last reconcile run.',
    () => lastCounts.missing ?? 0,
  );
  metrics.gauge(
    'holdfast_blobs_unknown',
    'Objects without a database row that the last reconcile run left alone.',
    () => lastCounts.held ?? 0,
  );
  return {
    name: reconcileName,
    everySeconds: config.reconcile.everySeconds,
    observe: async () => {
      lastCounts = JSON.parse((await runs.findResult(reconcileName)) ?? '{}');
    },
    run: async (signal, { holder, place }) => {
      const begun = place === null ? await beginReconcile(context) : (JSON.parse(place) as ReconcilePlace);
      let adopted = begun.counts.adopted;
      const ended = await reconcile(context, begun, {
        objectsPerSecond: config.reconcile.objectsPerSecond,
        signal,
        onPage: (reached) => {
          metrics.blobsAdopted.inc(reached.counts.adopted - adopted);
          adopted = reached.counts.adopted;
          return runs.savePlace(reconcileName, holder, JSON.stringify(reached));
        },
      });
      if (ended.pass !== 'done') return;
      await runs.saveResult(reconcileName, JSON.stringify(ended.counts));
      logger.info(ended.counts, 'blob store and database compared');
    },
  };
}
