import type { AppContext } from '../shared/context.ts';
import type { JobDispatcher } from '../shared/jobs/dispatcher.ts';
import type { JobServices } from '../shared/jobs/job-definition.ts';
import type { QueueBoard } from '../shared/jobs/queue-board.ts';
import { createFoldPointRequest } from '../shared/jobs/snapshot-request.ts';
import type { ProcessHealth } from '../shared/platform/telemetry/status-server.ts';
import { StateReader } from '../shared/states/state-reader.ts';
import { type CredentialGuard, createCredentialGuard } from './credentials/credential-guard.ts';
import { createHealth } from './health.ts';
import { JournalFolding } from './updates/journal-compaction.ts';

/** What the API role needs besides the shared context: a way to its workers. */
export interface ApiContext extends AppContext {
  readonly dispatcher: JobDispatcher;
  /** What the API does of jobs itself. */
  readonly jobServices: JobServices;
  readonly health: ProcessHealth;
  /** Folds an update's journal before the call goes on; see JournalFolding. */
  readonly foldJournal: (updateId: string) => Promise<void>;
  /** Asks for API tokens and leases. */
  readonly credentials: CredentialGuard;
  /** Only where jobs go through Redis. */
  readonly board?: QueueBoard;
}

/** The context of an API whose heavy work goes to `dispatcher`. */
export function createApiContext(
  context: AppContext & { readonly board?: QueueBoard },
  dispatcher: JobDispatcher,
): ApiContext {
  const folding = new JournalFolding(context, dispatcher);
  const foldJournal = (updateId: string): Promise<void> => folding.fold(updateId);
  const states = new StateReader({ ...context, compactLarge: foldJournal });
  const credentials = createCredentialGuard(context);
  const requestFoldPoint = createFoldPointRequest((job) => dispatcher.enqueue(job), context.logger);
  const jobServices: JobServices = { ...context, requestFoldPoint };
  const health = createHealth(context, dispatcher);
  return { ...context, dispatcher, jobServices, foldJournal, credentials, states, health };
}
