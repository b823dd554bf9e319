import type { AppContext } from '../../shared/context.ts';
import { compactJournal } from '../../shared/jobs/definitions.ts';
import type { JobDispatcher } from '../../shared/jobs/dispatcher.ts';
import { ByteBudget } from '../../shared/platform/payloads/byte-budget.ts';
import { QueueAwayError } from '../../shared/platform/redis/queue-away.ts';

/**
 * What the API folds itself when no worker can be reached: in a thread, but in its own memory. 5,000 entries are an update of
 * some 2,000 resources, and take well below a second.
 */
const mostEntries = 5_000;
const mostBaseBytes = 8 * 1024 * 1024;

/** Folds journals for calls that wait for it: by a worker, or here when the queue is away and the journal short. */
export class JournalCompaction {
  readonly #context: AppContext;
  readonly #dispatcher: JobDispatcher;
  readonly #turn = new ByteBudget(1);

  constructor(context: AppContext, dispatcher: JobDispatcher) {
    this.#context = context;
    this.#dispatcher = dispatcher;
  }

  /** Throws InvalidJournalError, and UnavailableError when no worker can be reached for a long journal. */
  async fold(updateId: string): Promise<void> {
    try {
      await this.#dispatcher.run(compactJournal.create({ updateId }), { onlyWhileReachable: true });
    } catch (error) {
      if (!(error instanceof QueueAwayError) || !(await this.#isShort(updateId))) throw error;
      this.#context.logger.warn({ updateId, err: error }, 'journal compacted without a worker');
      await this.#foldHere(updateId);
    }
  }

  async #isShort(updateId: string): Promise<boolean> {
    const { checkpoints, updates } = this.#context;
    const update = await updates.find(updateId);
    const base = update?.baseCheckpointId ? await checkpoints.find(update.baseCheckpointId) : null;
    return (update?.entryCount ?? 0) <= mostEntries && (base?.sizeBytes ?? 0) <= mostBaseBytes;
  }

  /** One after the other: all stacks' folds come here while the queue is away. */
  async #foldHere(updateId: string): Promise<void> {
    await this.#turn.acquire(1, null);
    try {
      await this.#context.compactor.compact(updateId);
    } finally {
      this.#turn.release(1);
    }
  }
}
