import type { AppContext } from '../../shared/context.ts';
import type { JobDispatcher } from '../../shared/jobs/dispatcher.ts';
import type { JobServices } from '../../shared/jobs/job-list.ts';
import type { JobQueueView } from '../../shared/jobs/job-queue-view.ts';
import type { Replica } from '../../shared/platform/db/replica/replica.ts';
import type { ProcessHealth } from '../../shared/platform/telemetry/status-server.ts';
import type { StateScans } from './admission/state-scans.ts';
import type { RequestRates } from './rates/request-rates.ts';

/** The shared context plus services of the API role. */
export interface ApiContext extends AppContext {
  readonly dispatcher: JobDispatcher;
  /** Services for the jobs that the API runs itself. */
  readonly jobServices: JobServices;
  readonly health: ProcessHealth;
  /** Compacts an update's journal before the call continues; see CompactionCalls. */
  readonly awaitCompaction: (updateId: string, organization?: string, baseBytes?: number) => Promise<void>;
  /** Serves reads that may be large; null: the primary does. */
  readonly replica: Replica | null;
  readonly rates: RequestRates;
  readonly scans: StateScans;
  /** Only set if jobs go through Redis. */
  readonly jobQueueView?: JobQueueView;
}
