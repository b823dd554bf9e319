import type { BodyBuffer } from '../documents/body-buffer.ts';
import type { BodyEncoding, ByteSource } from '../documents/byte-source.ts';
import type { OpenedBody, WriteBody } from '../documents/write-body.ts';
import type { BodySeal, PayloadStore } from '../platform/payloads/payload-store.ts';
import {
  advanceFold,
  appendEvents,
  appendJournal,
  applyCheckpoint,
  compactJournal,
  importDeployment,
  type Job,
  type JobName,
  renameStack,
} from './definitions.ts';
import type { JobServices } from './job-definition.ts';

/** Runs one job to its outcome; the seal is that of its body. Total by type: a job without a handler does not compile. */
export type JobHandlers = {
  readonly [N in JobName]: (job: Extract<Job, { name: N }>, seal: BodySeal | null) => Promise<void>;
};

/** Where the bodies of queued jobs lie, and the memory that they are inflated in. */
export interface PayloadSource {
  readonly handover: PayloadStore;
  readonly bodyBuffer: BodyBuffer;
}

/** What a process that takes jobs from a queue does for each. */
export function createJobHandlers(services: JobServices, source: PayloadSource): JobHandlers {
  const bodyOf = (job: Queued, stackId: string, seal: BodySeal | null) => new StoredBody(source, job, stackId, seal);
  return {
    'apply-checkpoint': (job, seal) => applyCheckpoint.run(services, job, bodyOf(job, job.fence.stackId, seal)),
    'append-journal': (job, seal) => appendJournal.run(services, job, bodyOf(job, job.fence.stackId, seal)),
    'append-events': (job, seal) => appendEvents.run(services, job, bodyOf(job, job.fence.stackId, seal)),
    'import-deployment': (job, seal) => importDeployment.run(services, job, bodyOf(job, job.stackId, seal)),
    'rename-stack': (job) => renameStack.run(services, job),
    'fold-journal': (job) => compactJournal.run(services, job),
    'advance-fold': (job) => advanceFold.run(services, job),
  };
}

/** Lets go of the body of a job that has ended. */
export async function dropPayload({ handover }: Pick<PayloadSource, 'handover'>, job: Job): Promise<void> {
  if ('payloadKey' in job) await handover.delete(job.payloadKey);
}

interface Queued {
  readonly payloadKey: string;
  readonly encoding: BodyEncoding;
}

/**
 * The body of a queued job. It stays in the store until the job's end is written down: a job that is run again, after a fault or by
 * another worker, must find it.
 */
class StoredBody implements WriteBody {
  readonly #source: PayloadSource;
  readonly #job: Queued;
  readonly #stackId: string;
  readonly #seal: BodySeal | null;

  constructor(source: PayloadSource, job: Queued, stackId: string, seal: BodySeal | null) {
    this.#source = source;
    this.#job = job;
    this.#stackId = stackId;
    this.#seal = seal;
  }

  async open(): Promise<OpenedBody> {
    return { body: this.#bytes, encoding: this.#job.encoding, inflated: null };
  }

  /** Jobs come in an order that is fair to organizations already: of those in hand it is the stacks that take turns. */
  use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T> {
    return this.#source.bodyBuffer.use(this.#bytes, this.#job.encoding, work, this.#stackId);
  }

  readonly #bytes: ByteSource = () => this.#source.handover.open(this.#job.payloadKey, this.#seal);
}
