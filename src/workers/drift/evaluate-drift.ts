import type { AppContext } from '../../shared/context.ts';
import { createDriftRepository, type WaitingDriftRun } from '../../shared/drift/drift-repository.ts';
import { textOf } from '../../shared/events/event-text.ts';
import { recordWebhookEvent } from '../../shared/webhooks/record-webhook-event.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';
import { type DriftCounts, driftOfEvent, driftOfSummary } from './drift-counts.ts';

const runsAtOnce = 50;
/** Larger events contain nothing relevant. */
const maxEventBytes = 4 * 1024 * 1024;
const appetite = { events: 1_000, bytes: 4 * 1024 * 1024 };

type Parts = Pick<AppContext, 'blobs' | 'db' | 'eventReader' | 'logger' | 'metrics'>;

/**
 * Evaluates and records the drift found by ended runs, and notifies webhooks of new drift, in the same transaction. Safe in any number of
 * processes.
 */
export async function evaluateDrift(parts: Parts, signal: AbortSignal): Promise<number> {
  const { blobs, db, logger, metrics } = parts;
  let done = 0;
  let last: WaitingDriftRun | null = null;
  for (;;) {
    const waiting: readonly WaitingDriftRun[] = await createDriftRepository(db).listWaiting(last, runsAtOnce);
    for (const run of waiting) {
      if (signal.aborted) return done;
      last = run;
      try {
        await evaluate(parts, run);
        done++;
      } catch (error) {
        await assertStoreReachable(blobs, error);
        metrics.tasksPostponed.labels('evaluate-drift').inc();
        logger.warn({ updateId: run.updateId, err: error }, 'drift: this run will be evaluated again');
      }
    }
    if (waiting.length < runsAtOnce) return done;
  }
}

async function evaluate(parts: Parts, run: WaitingDriftRun): Promise<void> {
  const { organizationId, stackId, updateId } = run;
  const found =
    run.kind === 'refresh'
      ? (driftOfSummary(run.resourceChanges) ?? (run.hasResources ? null : {}))
      : await driftInEvents(parts, updateId);
  // Other resources may have drifted, or an update may have been causing the differences.
  const isInconclusive = found !== null && (Object.keys(found).length === 0 ? run.isPartial : run.isBesideUpdate);
  if (found === null || isInconclusive) {
    await createDriftRepository(parts.db).forget(updateId);
    return;
  }
  const counts = Object.fromEntries(Object.entries(found).sort());
  await parts.db.inTransaction(async (tx) => {
    const isDetected = Object.keys(counts).length > 0;
    const isNews = await createDriftRepository(tx).finish(updateId, isDetected, JSON.stringify(counts));
    if (isNews)
      await recordWebhookEvent(tx, 'drift_detected', {
        organizationId,
        stackId,
        updateId,
        details: { changes: counts },
      });
  });
}

/** Returns null if the update with --refresh compared nothing. */
async function driftInEvents({ eventReader }: Parts, updateId: string): Promise<DriftCounts | null> {
  const found = { update: 0, delete: 0 };
  let hasCompared = false;
  const selection = { beyond: -1, newestFirst: false, urn: null, types: ['resOutputsEvent'] };
  for await (const events of eventReader.read({ id: updateId, mayHaveRows: true }, selection, appetite)) {
    for (const event of events) {
      const text = event.bytes <= maxEventBytes ? await textOf(event) : '';
      const result = driftOfEvent(text);
      if (result === null) continue;
      hasCompared = true;
      if (result !== 'same') found[result]++;
    }
  }
  if (!hasCompared) return null;
  return Object.fromEntries(Object.entries(found).filter(([, count]) => count > 0));
}
