import type { CheckpointRepository } from '../state/checkpoints/checkpoint-repository.ts';
import type { DispatcherState, DispatchOptions, JobDispatcher } from './dispatcher.ts';
import type { Job } from './job-list.ts';

/** Returns the id of the update whose state the job reads, if it has no body that says how large the job is. */
function updateToMeasure(job: Job): string | null {
  if (job.name === 'compact-journal') return job.updateId;
  return job.name === 'snapshot-journal' && job.incremental !== true ? job.updateId : null;
}

/** Adds the size of the state, which selects the queue. Leaves it out if it cannot be read: the job runs in any queue. */
export async function withStateBytes(
  job: Job,
  checkpoints: Pick<CheckpointRepository, 'findBytesOfUpdate'>,
  options: DispatchOptions = {},
): Promise<DispatchOptions> {
  const updateId = updateToMeasure(job);
  const bytes = updateId === null ? null : await checkpoints.findBytesOfUpdate(updateId).catch(() => null);
  return bytes === null ? options : { ...options, bytes };
}

/** Sends jobs about the journals of large states to the queue of large bodies, so that small writes do not wait for them. */
export class StateSizingDispatcher implements JobDispatcher {
  readonly #dispatcher: JobDispatcher;
  readonly #checkpoints: Pick<CheckpointRepository, 'findBytesOfUpdate'>;
  readonly #measuring = new Set<Promise<DispatchOptions>>();

  constructor(dispatcher: JobDispatcher, checkpoints: Pick<CheckpointRepository, 'findBytesOfUpdate'>) {
    this.#dispatcher = dispatcher;
    this.#checkpoints = checkpoints;
  }

  async run(job: Job, options?: DispatchOptions): Promise<void> {
    if (updateToMeasure(job) === null) return this.#dispatcher.run(job, options);
    await this.#dispatcher.run(job, await this.#measure(job, options));
  }

  async enqueue(job: Job, options?: DispatchOptions): Promise<void> {
    if (updateToMeasure(job) === null) return this.#dispatcher.enqueue(job, options);
    await this.#dispatcher.enqueue(job, await this.#measure(job, options));
  }

  state(): DispatcherState {
    return this.#dispatcher.state();
  }

  async close(): Promise<void> {
    await this.settle();
    await this.#dispatcher.close();
  }

  /** Waits until the jobs that it has accepted are dispatched. */
  async settle(): Promise<void> {
    await Promise.all(this.#measuring);
  }

  async #measure(job: Job, options?: DispatchOptions): Promise<DispatchOptions> {
    const measuring = withStateBytes(job, this.#checkpoints, options);
    this.#measuring.add(measuring);
    try {
      return await measuring;
    } finally {
      this.#measuring.delete(measuring);
    }
  }
}
