import type { AppContext } from '../../shared/context.ts';
import {
  checkpointWrite,
  compactJournal,
  eventWrite,
  importWrite,
  type Job,
  type JobName,
  type JobServices,
  journalWrite,
  renameStack,
  snapshotJournal,
} from '../../shared/jobs/job-list.ts';
import { createSnapshotRequest } from '../../shared/jobs/journal-requests.ts';
import type { ByteSource } from '../../shared/platform/bytes/byte-source.ts';
import type { BodyBuffer, OpenedBody, WriteBody } from '../../shared/platform/payloads/body-buffer.ts';
import type { BodyEncoding } from '../../shared/platform/payloads/inflate.ts';
import type { BodyEncryption, PayloadStore } from '../../shared/platform/payloads/payload-store.ts';
import type { ReadOnlyMode } from '../../shared/platform/read-only/read-only-mode.ts';

/** `encryption` belongs to its body. A job without a handler does not compile. */
export type JobHandlers = {
  readonly [N in JobName]: (job: Extract<Job, { name: N }>, encryption: BodyEncryption | null) => Promise<void>;
};

/** The bodies of queued jobs, and the memory for inflating them. */
export interface PayloadSource {
  readonly payloads: PayloadStore;
  readonly bodyBuffer: BodyBuffer;
}

/** `enqueue` is for the jobs that these jobs request. */
export function jobServicesOf(context: AppContext, enqueue: (job: Job) => Promise<void>): JobServices {
  const { stateEdits, compactor, eventWriter, importer, incrementalCompaction, journalWriter, renamer, writer } =
    context;
  return {
    ...{ stateEdits, compactor, eventWriter, importer, incrementalCompaction, journalWriter, renamer, writer },
    requestSnapshot: createSnapshotRequest(enqueue, context.logger),
    requestIncremental: async (updateId) => incrementalCompaction.request(updateId),
  };
}

/** The handlers throw ReadOnlyError once another site has taken over. */
export function createJobHandlers(
  services: JobServices,
  source: PayloadSource & { readonly readOnly: ReadOnlyMode },
): JobHandlers {
  const bodyOf = (job: Queued, stackId: string, encryption: BodyEncryption | null) =>
    new StoredBody(source, job, stackId, encryption);
  const handlers: JobHandlers = {
    'apply-checkpoint': (job, encryption) =>
      checkpointWrite.run(services, job, bodyOf(job, job.fence.stackId, encryption)),
    'append-journal': (job, encryption) => journalWrite.run(services, job, bodyOf(job, job.fence.stackId, encryption)),
    'append-events': (job, encryption) => eventWrite.run(services, job, bodyOf(job, job.fence.stackId, encryption)),
    'import-deployment': (job, encryption) => importWrite.run(services, job, bodyOf(job, job.stackId, encryption)),
    'rename-stack': (job) => renameStack.run(services, job),
    'compact-journal': (job) => compactJournal.run(services, job),
    'snapshot-journal': (job) => snapshotJournal.run(services, job),
  };
  const guarded = Object.entries(handlers).map(([name, run]) => [
    name,
    async (...job: [never, BodyEncryption | null]) => {
      source.readOnly.assertNotFenced();
      await run(...job);
    },
  ]);
  return Object.fromEntries(guarded) as JobHandlers;
}

export async function dropPayload({ payloads }: Pick<PayloadSource, 'payloads'>, job: Job): Promise<void> {
  if ('payloadKey' in job) await payloads.delete(job.payloadKey);
}

interface Queued {
  readonly payloadKey: string;
  readonly encoding: BodyEncoding;
}

/** Stays in the store until the job's result is stored: a job that runs again, after a fault or on another worker, must find its body. */
class StoredBody implements WriteBody {
  readonly #source: PayloadSource;
  readonly #job: Queued;
  readonly #stackId: string;
  readonly #encryption: BodyEncryption | null;

  constructor(source: PayloadSource, job: Queued, stackId: string, encryption: BodyEncryption | null) {
    this.#source = source;
    this.#job = job;
    this.#stackId = stackId;
    this.#encryption = encryption;
  }

  async open(): Promise<OpenedBody> {
    return { body: this.#bytes, encoding: this.#job.encoding, inflated: null };
  }

  /** The queue is already fair to organizations, so running jobs share memory by stack. */
  use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T> {
    return this.#source.bodyBuffer.use(this.#bytes, this.#job.encoding, work, this.#stackId);
  }

  readonly #bytes: ByteSource = () => this.#source.payloads.open(this.#job.payloadKey, this.#encryption);
}
