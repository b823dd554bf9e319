import type { AppContext } from '../shared/context.ts';
import type { JobDispatcher } from '../shared/jobs/dispatcher.ts';
import type { Job, JobServices } from '../shared/jobs/job-list.ts';
import type { JobQueueView } from '../shared/jobs/job-queue-view.ts';
import { createIncrementalRequest, createSnapshotRequest } from '../shared/jobs/journal-requests.ts';
import { Replica } from '../shared/platform/db/replica/replica.ts';
import { StateReader } from '../shared/state/state-reader.ts';
import { StateScans } from './platform/admission/state-scans.ts';
import type { ApiContext } from './platform/api-context.ts';
import { createHealth } from './platform/http/health.ts';
import { createRequestRates } from './platform/rates/request-rates.ts';
import { CompactionCalls } from './updates/compaction-calls.ts';

/** Heavy work goes to `dispatcher`. Throws ConfigError if the replica's URL is not valid. */
export async function createApiContext(
  context: AppContext & { readonly jobQueueView?: JobQueueView },
  dispatcher: JobDispatcher,
): Promise<ApiContext> {
  const replica = await openReplica(context);
  const compactions = new CompactionCalls(context, dispatcher);
  const awaitCompaction = compactions.compact.bind(compactions);
  // Other services decide by what they read, so they use the primary.
  const states = new StateReader({ ...context, compactLarge: awaitCompaction, replica: null });
  const rates = createRequestRates(context);
  const enqueue = (job: Job): Promise<void> => dispatcher.enqueue(job);
  const requestSnapshot = createSnapshotRequest(enqueue, context.logger);
  const requestIncremental = createIncrementalRequest(enqueue, context.logger);
  const jobServices: JobServices = { ...context, requestSnapshot, requestIncremental };
  const health = createHealth(context, dispatcher);
  const parts = { ...context, dispatcher, jobServices, awaitCompaction, rates, states, health, replica };
  const largeStates = new StateReader({ ...context, compactLarge: awaitCompaction, replica });
  return { ...parts, scans: new StateScans(largeStates, context.metrics) };
}

async function openReplica({ config, db, lifecycle, logger, metrics }: AppContext): Promise<Replica | null> {
  const { replicaUrl, ...limits } = config.database;
  if (replicaUrl === null) return null;
  const replica = await Replica.open({ ...limits, url: replicaUrl }, { primary: db, logger, metrics });
  lifecycle.onClose('stores', 'replica', () => replica.close());
  return replica;
}
