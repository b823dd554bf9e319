import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { Quotas } from '../../../shared/access/quotas/quota-service.ts';
import { TooManyInFlightError } from '../../../shared/access/quotas/quotas.ts';
import type { JobDispatcher } from '../../../shared/jobs/dispatcher.ts';
import type { Job, JobServices, WriteDefinition } from '../../../shared/jobs/job-list.ts';
import { freeBuffer } from '../../../shared/platform/bytes/buffers.ts';
import { bytesOf } from '../../../shared/platform/bytes/byte-source.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { PayloadTooLargeError } from '../../../shared/platform/errors/errors.ts';
import { JobPendingError } from '../../../shared/platform/errors/outcome.ts';
import {
  type BodyBuffer,
  type OpenedBody,
  parsedWeight,
  rawWeight,
  type WriteBody,
} from '../../../shared/platform/payloads/body-buffer.ts';
import type { BodyEncoding } from '../../../shared/platform/payloads/inflate.ts';
import { BudgetExhaustedError, type PayloadStore } from '../../../shared/platform/payloads/payload-store.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import { LargeBaseError } from '../../../shared/state/checkpoints/checkpoint-writer.ts';
import type { LeaseFence } from '../../../shared/updates/fence.ts';
import { assertAwaited, whileConnected } from '../../platform/http/awaited.ts';
import { leaseToken } from '../../platform/http/paths.ts';
import type { Lease } from '../../platform/http/request.ts';
import { declaredBytes, maxDirectInflatedBytes, type PayloadBody, readBody } from '../../platform/http/request-body.ts';
import { UpdateParams } from '../../platform/protocol/core.ts';

/**
 * Routes for the checkpoints, journal entries and engine events of a running update. Their bodies are not parsed here, because their exact
 * bytes matter. `body`: for the OpenAPI document.
 */
export function fencedWrite(
  body: TSchema,
  { summary, tag, errorStatuses = [] }: { summary: string; tag: string; errorStatuses?: readonly number[] },
) {
  return {
    compress: false,
    config: {
      access: { kind: 'lease', fenced: true },
      rate: 'never',
      audit: { none: 'part of its update, whose start and end are recorded' },
      body: 'payload',
      described: { body, errorStatuses },
    },
    schema: {
      tags: [tag],
      summary,
      security: leaseToken,
      params: UpdateParams,
      response: { 204: Type.Null() },
    },
  } as const;
}

/** The part of a lease that a write checks again when it commits. */
export function fenceOf({ updateId, stackId, epoch }: Lease): LeaseFence {
  return { updateId, stackId, epoch };
}

/** Maximum wait for memory to inflate a body: for calls that the CLI retries, and for others. */
const retriedWaitMs = 30_000;
const unretriedWaitMs = 60_000;

export interface WriteParts {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly quotas: Quotas;
  readonly dispatcher: JobDispatcher;
  readonly payloads: PayloadStore;
  readonly bodyBuffer: BodyBuffer;
  readonly services: JobServices;
}

/** Resolves once the body of the request is committed. */
export type SubmitWrite = <J, I>(request: FastifyRequest, write: WriteDefinition<J, I, Job>, input: I) => Promise<void>;

/**
 * The only path for writes with a body. Small bodies are committed here. Larger ones go to the payload store, still compressed, and a job
 * with their key goes to the workers. Both run the same definition, which is beside the code that commits the write.
 */
export function createSubmitWrite(parts: WriteParts): SubmitWrite {
  const { config, metrics } = parts;
  return async (request, write, input) => {
    const label = write.label(input);
    const timer = metrics.commitSeconds.labels(label).startTimer();
    const declared = declaredBytes(request);
    if (declared !== null) metrics.commitBytes.labels(label).inc(declared);
    const body = await readBody(request, config);
    const submission = { request, write, input, fairnessKey: fairnessKeyOf(request) };
    if (body.direct === null) await commitOnWorker(parts, submission, body);
    else await commitHere(parts, submission, body.direct, body.encoding);
    timer();
  };
}

interface Submission<J, I> {
  readonly request: FastifyRequest;
  readonly write: WriteDefinition<J, I, Job>;
  readonly input: I;
  /** The organization whose share of in-flight budget, memory and workers the call counts against. */
  readonly fairnessKey: string;
}

/** The memory for the inflated body is reserved until the commit ends. */
async function commitHere<J, I>(
  parts: WriteParts,
  submission: Submission<J, I>,
  bytes: Buffer,
  encoding: BodyEncoding,
): Promise<void> {
  const { config, services, bodyBuffer } = parts;
  const { write, fairnessKey } = submission;
  const job = await createJob(services, submission);
  const { maxBatchBytes, maxBodyBytes } = config.limits;
  const options = {
    bodyBuffer,
    maxBatchBytes: Math.min(maxBatchBytes, maxBodyBytes),
    waitMs: write.budget === 'imports' ? unretriedWaitMs : retriedWaitMs,
    fairnessKey,
  };
  const run = async (): Promise<void> => {
    using body = new MemoryBody(bytes, encoding, options);
    await write.run(services, job, body);
  };
  try {
    await awaitCommit(services, write, job, run());
  } catch (error) {
    if (!(error instanceof LargeBaseError)) throw error;
    // Nothing was written.
    const body = { encoding, declared: bytes.length, stream: bytesOf(bytes)() };
    await commitOnWorker(parts, submission, body, error.baseBytes);
  }
}

/** `workBytes`: the data that the job reads, if larger than its body. */
async function commitOnWorker<J, I>(
  { config, dispatcher, payloads, quotas, services }: WriteParts,
  submission: Submission<J, I>,
  { declared, encoding, stream }: Omit<PayloadBody, 'direct'>,
  workBytes = 0,
): Promise<void> {
  const { request, write, fairnessKey } = submission;
  const payloadKey = randomUUID();
  const { inFlightBytes: keyLimit } = await quotas.limitsOf(fairnessKey);
  const options = {
    maxBytes: config.limits.maxBodyBytes,
    declaredBytes: declared,
    budget: write.budget,
    fairnessKey,
    keyLimit,
  };
  const put = (gone: AbortSignal) => payloads.put(payloadKey, stream, { ...options, gone });
  const { bytes, encryption } = await whileConnected(request.raw, put).catch(async (error: unknown) => {
    if (keyLimit === null || !(error instanceof BudgetExhaustedError) || !error.isKeyLimit) throw error;
    quotas.refused('inFlightBytes');
    const used = (await payloads.heldByKey(write.budget)).get(fairnessKey) ?? 0;
    throw new TooManyInFlightError(fairnessKey, keyLimit, used);
  });
  // A body that is not deleted here expires.
  const release = (): Promise<void> =>
    payloads
      .delete(payloadKey)
      .catch((error: unknown) => request.log.debug({ err: error }, 'body could not be deleted; it will expire'));
  try {
    const job = await createJob(services, submission);
    // From here on, the body is committed even if the client disconnects.
    const running = dispatcher.run(write.queued(job, { payloadKey, encoding }), {
      bytes: Math.max(bytes, workBytes),
      encryption,
      fairnessKey,
    });
    await awaitCommit(services, write, job, running);
  } catch (error) {
    // A job that may still be running needs its body.
    if (write.resolveFailure || !(error instanceof JobPendingError)) await release();
    throw error;
  }
  // The worker deletes the body, too, unless it died after the commit. Not awaited: the client waits for the response.
  void release();
}

/** Creates the job in the format of this release. Call once the body has arrived completely. */
async function createJob<J, I>(services: JobServices, { request, write, input }: Submission<J, I>): Promise<J> {
  if (write.onlyWhileAwaited?.(input)) await assertAwaited(request.raw);
  return write.create(services, input);
}

async function awaitCommit<J, I>(
  services: JobServices,
  write: WriteDefinition<J, I, Job>,
  job: J,
  commit: Promise<void>,
): Promise<void> {
  await commit.catch((error: unknown) => {
    if (!write.resolveFailure) throw error;
    return write.resolveFailure(services, job, error);
  });
}

function fairnessKeyOf(request: FastifyRequest): string {
  return (request.params as { organization: string }).organization;
}

interface MemoryBodyOptions {
  readonly bodyBuffer: BodyBuffer;
  /** The inflated size of a body that is parsed. */
  readonly maxBatchBytes: number;
  /** Maximum wait for memory. */
  readonly waitMs: number;
  /** The organization whose share of the memory the call counts against. */
  readonly fairnessKey: string;
}

/** Inflated only once unless the body turns out larger than it declares. Disposal releases the memory reserved for the inflated body. */
class MemoryBody implements WriteBody, Disposable {
  readonly #body: Buffer;
  readonly #encoding: BodyEncoding;
  readonly #options: MemoryBodyOptions;
  #release = (): void => {};

  constructor(body: Buffer, encoding: BodyEncoding, options: MemoryBodyOptions) {
    this.#body = body;
    this.#encoding = encoding;
    this.#options = options;
  }

  async open({ parsed = false } = {}): Promise<OpenedBody> {
    try {
      const inflated = await (parsed
        ? this.#inflate(this.#options.maxBatchBytes, parsedWeight)
        : this.#inflate(maxDirectInflatedBytes, rawWeight));
      return {
        body: bytesOf(inflated),
        encoding: 'identity',
        inflated,
        maxBaseBytes: maxDirectInflatedBytes,
        free: () => this.#free(inflated),
      };
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError)) throw error;
      // Of several gzip members, only the size of the last one is known in advance, so the body is read as a stream, like any large body. A
      // delta that is too large is read as a stream, too, and refused there.
      return {
        body: bytesOf(this.#body),
        encoding: this.#encoding,
        inflated: null,
        maxBaseBytes: maxDirectInflatedBytes,
      };
    }
  }

  async use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T> {
    return work(await this.#inflate(this.#options.maxBatchBytes, parsedWeight));
  }

  [Symbol.dispose](): void {
    this.#release();
  }

  #free(inflated: Buffer): void {
    // The socket accounts for an uncompressed body.
    if (this.#encoding === 'gzip') freeBuffer(inflated);
    this.#release();
  }

  async #inflate(maxBytes: number, weight: number): Promise<Buffer> {
    const { bodyBuffer, waitMs, fairnessKey } = this.#options;
    const inflated = await bodyBuffer.inflate(this.#body, this.#encoding, { maxBytes, weight, waitMs, fairnessKey });
    this.#release = inflated.release;
    return inflated.body;
  }
}
