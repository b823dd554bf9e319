import type { AppContext } from '../../shared/context.ts';
import { beginReconcile, type ReconcilePlace, reconcile } from '../../shared/documents/reconcile-blobs.ts';
import type { RunRepository } from '../../shared/platform/maintenance/run-repository.ts';
import type { Maintenance } from './maintenance.ts';

/** Name of the task. */
const reconcileName = 'reconcile';

/**
 * Creates the reconcile task, which compares all blobs with the database every `config.reconcile.everySeconds`. Any process
 * can resume where another one stopped. Every process reports the result of the last complete run.
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
      const start = place === null ? await beginReconcile(context) : (JSON.parse(place) as ReconcilePlace);
      let adopted = start.counts.adopted;
      const end = await reconcile(context, start, {
        objectsPerSecond: config.reconcile.objectsPerSecond,
        signal,
        onPage: (reached) => {
          metrics.blobsAdopted.inc(reached.counts.adopted - adopted);
          adopted = reached.counts.adopted;
          return runs.savePlace(reconcileName, holder, JSON.stringify(reached));
        },
      });
      if (end.pass !== 'done') return;
      await runs.saveResult(reconcileName, JSON.stringify(end.counts));
      logger.info(end.counts, 'blob store and database compared');
    },
  };
}
