import type { AppContext } from '../../shared/context.ts';
import type { DispatchOptions, JobDispatcher } from '../../shared/jobs/dispatcher.ts';
import { compactJournal } from '../../shared/jobs/job-list.ts';
import { runInOrder } from '../../shared/platform/db/connection-gate.ts';
import { JobPendingError } from '../../shared/platform/errors/outcome.ts';
import { ByteBudget } from '../../shared/platform/payloads/byte-budget.ts';
import { QueueUnavailableError } from '../../shared/platform/redis/queue-unavailable.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Lease } from '../platform/http/request.ts';

/**
 * Maximum size of a journal and its base that the API compacts itself when no worker can be reached. The compaction runs in a thread, but
 * in the memory of the API. 5,000 entries are an update of about 2,000 resources, and take well under a second.
 */
const maxEntries = 5_000;
const maxBaseBytes = 8 * 1024 * 1024;

/**
 * Enqueues the compaction of the journal of an ended update. Not awaited, because the queue may be remote. If it fails, the sweep compacts
 * the journal. `baseBytes`: stored size of the journal's base.
 */
export function compactSoon({ dispatcher, logger }: ApiContext, updateId: string, baseBytes = 0): void {
  const options = { bytes: baseBytes };
  runInOrder(() => dispatcher.enqueue(compactJournal.create({ updateId }), options)).catch((error: unknown) =>
    logger.warn({ updateId, err: error }, 'journal left to the background task'),
  );
}

/**
 * Compacts the journal of a running update. Ignores a failure if nothing is left to compact, or if the update has ended meanwhile.
 * `isAssumed`: the caller does not know whether there are entries.
 */
export async function compactRunning(
  { awaitCompaction, updates }: ApiContext,
  { baseBytes, updateId }: Lease,
  { isAssumed, organization }: { readonly isAssumed: boolean; readonly organization: string },
): Promise<void> {
  const isNeeded = async (): Promise<boolean> => {
    const update = await updates.find(updateId);
    return update !== null && isActive(update.status) && update.hasPendingEntries;
  };
  const compaction = awaitCompaction(updateId, organization, baseBytes);
  // A failure may arrive when nobody waits for the promise any more.
  compaction.catch(() => {});
  // Runs at the same time as the compaction, to be faster.
  if (isAssumed && !(await isNeeded())) return;
  await compaction.catch(async (error: unknown) => {
    if (await isNeeded()) throw error;
  });
}

interface Compaction {
  readonly running: Promise<void>;
  /** Begins when `running` has ended. */
  next: Promise<void> | null;
}

/**
 * Compacts journals for waiting calls: on a worker, or in this process if the queue is unavailable and the journal is short. Calls for one
 * update share a job; otherwise many readers' jobs would wait for each other on all workers.
 */
export class CompactionCalls {
  readonly #context: AppContext;
  readonly #dispatcher: JobDispatcher;
  readonly #turn = new ByteBudget(1);
  readonly #compactions = new Map<string, Compaction>();

  constructor(context: AppContext, dispatcher: JobDispatcher) {
    this.#context = context;
    this.#dispatcher = dispatcher;
  }

  /**
   * Throws InvalidJournalError, UnavailableError if no worker can be reached and the journal is long, and ReadOnlyError once another site
   * has taken over. `organization`: its share of the workers is used. `baseBytes`: stored size of the journal's base; small writes must not
   * wait for a large one.
   */
  compact(updateId: string, organization?: string, baseBytes = 0): Promise<void> {
    const compaction = this.#compactions.get(updateId);
    // The fairness key puts jobs that other processes repeat for this update behind the first jobs of others.
    const begin = (): Promise<void> =>
      this.#begin(updateId, { fairnessKey: organization ?? updateId, bytes: baseBytes });
    if (!compaction) return begin();
    // The running compaction may have begun before the newest entries arrived.
    compaction.next ??= compaction.running.then(begin, begin);
    return withTimeout(compaction.next, this.#context.config.jobs.waitSeconds * 1000, () => new JobPendingError());
  }

  #begin(updateId: string, options: DispatchOptions): Promise<void> {
    const running = this.#compact(updateId, options).finally(() => {
      if (compaction.next === null) this.#compactions.delete(updateId);
    });
    const compaction: Compaction = { running, next: null };
    this.#compactions.set(updateId, compaction);
    return running;
  }

  async #compact(updateId: string, options: DispatchOptions): Promise<void> {
    this.#context.readOnly.assertNotFenced();
    try {
      await this.#dispatcher.run(compactJournal.create({ updateId }), { ...options, onlyWhileReachable: true });
    } catch (error) {
      if (!(error instanceof QueueUnavailableError) || !(await this.#isShort(updateId))) throw error;
      this.#context.logger.warn({ updateId, err: error }, 'journal compacted without a worker');
      await this.#compactHere(updateId);
    }
  }

  async #isShort(updateId: string): Promise<boolean> {
    const { checkpoints, updates } = this.#context;
    const update = await updates.find(updateId);
    const base = update?.baseCheckpointId ? await checkpoints.find(update.baseCheckpointId) : null;
    return (update?.entryCount ?? 0) <= maxEntries && (base?.sizeBytes ?? 0) <= maxBaseBytes;
  }

  /** One compaction at a time: without the queue, compactions of all stacks run here. */
  async #compactHere(updateId: string): Promise<void> {
    await this.#turn.acquire(1, null);
    try {
      await this.#context.compactor.compact(updateId);
    } finally {
      this.#turn.release(1);
    }
  }
}
