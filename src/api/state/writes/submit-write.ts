import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Quotas } from '../../../shared/access/quotas/quota-service.ts';
import { TooManyInFlightError } from '../../../shared/access/quotas/quotas.ts';
import type { Job } from '../../../shared/jobs/definitions.ts';
import type { JobDispatcher } from '../../../shared/jobs/dispatcher.ts';
import type { JobServices, QueuedBody, WriteDefinition } from '../../../shared/jobs/job-definition.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import { JobPendingError } from '../../../shared/platform/errors/outcome.ts';
import { BudgetExhaustedError, type PayloadStore } from '../../../shared/platform/payloads/payload-store.ts';
import type { Metrics } from '../../../shared/platform/telemetry/metrics.ts';
import type { BodyBuffer } from '../../../shared/state/checkpoints/body-buffer.ts';
import { type BodyEncoding, bytesOf } from '../../../shared/state/checkpoints/byte-source.ts';
import { LargeBaseError } from '../../../shared/state/checkpoints/checkpoint-writer.ts';
import { assertAwaited } from '../../platform/http/awaited.ts';
import { declaredBytes } from '../../platform/http/body.ts';
import { type IncomingBody, MemoryBody, readBody } from './read-body.ts';

/** Maximum wait for memory to inflate a body, in ms: for calls that the CLI retries, and for others. */
const retriedWaitMs = 30_000;
const unretriedWaitMs = 60_000;

/** Dependencies of a write to be committed here or sent to a worker. */
export interface WriteParts {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly quotas: Quotas;
  readonly dispatcher: JobDispatcher;
  readonly payloads: PayloadStore;
  readonly bodyBuffer: BodyBuffer;
  readonly services: JobServices;
}

/** Submits a write with the body of a request; resolves once it is committed. */
export type SubmitWrite = <I, J extends BodilessJob>(
  request: FastifyRequest,
  write: WriteDefinition<I, J>,
  input: I,
) => Promise<void>;

/** A job that is queued with a body, without its body fields. */
type BodilessJob = WithoutBody<Extract<Job, QueuedBody>>;
type WithoutBody<J> = J extends unknown ? Omit<J, keyof QueuedBody> : never;

/**
 * The only path for writes with a body. Small bodies are committed here. Larger ones go to the payload store, still compressed, and
 * a job with their key goes to the workers. Both run the same job definition.
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

interface Submission<I, J> {
  readonly request: FastifyRequest;
  readonly write: WriteDefinition<I, J>;
  readonly input: I;
  /** The organization whose share of in-flight budget, memory and workers the call counts against. */
  readonly fairnessKey: string;
}

/** Commits a body in this process. The memory for the inflated body is reserved until the commit ends. */
async function commitHere<I, J extends BodilessJob>(
  parts: WriteParts,
  submission: Submission<I, J>,
  bytes: Buffer,
  encoding: BodyEncoding,
): Promise<void> {
  const { config, services, bodyBuffer } = parts;
  const { write, fairnessKey } = submission;
  const job = await admit(services, submission);
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

/** `workBytes`: size of what the job reads, if that is more than its body. */
async function commitOnWorker<I, J extends BodilessJob>(
  { config, dispatcher, payloads, quotas, services }: WriteParts,
  submission: Submission<I, J>,
  { declared, encoding, stream }: Omit<IncomingBody, 'direct'>,
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
  const { bytes, encryption } = await payloads.put(payloadKey, stream, options).catch(async (error: unknown) => {
    if (keyLimit === null || !(error instanceof BudgetExhaustedError) || !error.isKeyLimit) throw error;
    quotas.refused('inFlightBytes');
    const used = (await payloads.heldByKey(write.budget)).get(fairnessKey) ?? 0;
    throw new TooManyInFlightError(fairnessKey, keyLimit, used);
  });
  // A body that is not deleted expires.
  const release = (): Promise<void> =>
    payloads
      .delete(payloadKey)
      .catch((error: unknown) => request.log.debug({ err: error }, 'body could not be deleted; it will expire'));
  try {
    const job = await admit(services, submission);
    // From here on the body is committed even if the client disconnects.
    const running = dispatcher.run(
      { ...job, payloadKey, encoding },
      { bytes: Math.max(bytes, workBytes), encryption, fairnessKey },
    );
    await awaitCommit(services, write, job, running);
  } catch (error) {
    // A job that may still be running needs its body.
    if (write.resolveFailure || !(error instanceof JobPendingError)) await release();
    throw error;
  }
  // The worker does that, too, unless it died after the commit. Not awaited, since the client waits for the response.
  void release();
}

/** Creates the job, once its body has arrived completely. */
async function admit<I, J>(services: JobServices, { request, write, input }: Submission<I, J>): Promise<J> {
  if (write.onlyWhileAwaited?.(input)) await assertAwaited(request.raw);
  return write.admit(services, input);
}

async function awaitCommit<I, J>(
  services: JobServices,
  { resolveFailure }: WriteDefinition<I, J>,
  job: J,
  commit: Promise<void>,
): Promise<void> {
  if (resolveFailure) await commit.catch((error: unknown) => resolveFailure(services, job, error));
  else await commit;
}

function fairnessKeyOf(request: FastifyRequest): string {
  return (request.params as { organization: string }).organization;
}
