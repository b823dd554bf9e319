import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { type BodyEncoding, type ByteSource, bytesOf, claimedBytes } from '../../shared/checkpoints/byte-source.ts';
import { keptAsBytes, takenApart } from '../../shared/checkpoints/whole-bodies.ts';
import { PayloadTooLargeError } from '../../shared/platform/errors/errors.ts';
import { JobPendingError } from '../../shared/platform/queue/dispatcher.ts';
import { NoRoomError } from '../../shared/platform/queue/handover-store.ts';
import type { Job } from '../../shared/platform/queue/jobs.ts';
import { TooManyInFlightError } from '../../shared/quotas/quotas.ts';
import type { ApiContext } from '../api-context.ts';
import { assertAwaited } from '../plugins/awaited.ts';
import { bodyEncoding, collectBody, declaredBytes, unbroken } from '../plugins/body.ts';

/** Bodies that claim to inflate to more than this are a worker's work, however small they came. */
const maxDirectInflatedBytes = 8 * 1024 * 1024;

/** Longest wait for memory to inflate a body: of calls that the CLI repeats, and of others; in ms. */
const repeatedWaitMs = 30_000;
const patientWaitMs = 60_000;

/** A small body, for the API itself to commit. */
export interface DirectPayload {
  /** The body to be read several times: inflated once for all, unless it turns out larger than it claims. */
  readonly opened: () => Promise<{ body: ByteSource; encoding: BodyEncoding; inflated: Buffer | null }>;
  /** The inflated body of a batch. Throws PayloadTooLargeError, InvalidRequestError. */
  readonly inflated: () => Promise<Buffer>;
}

/** What a payload route does: commit a small body itself, or describe the job for a large one. */
export interface PayloadWork {
  /** Label in the metrics. */
  readonly kind: string;
  readonly direct: (payload: DirectPayload) => Promise<void>;
  readonly job: (handover: { handoverKey: string; encoding: BodyEncoding }) => Job | Promise<Job>;
  /** For calls that the CLI does not repeat: wait for room instead of answering 503. */
  readonly waitForRoom?: true;
  /**
   * Do nothing for a client that is gone when its body is here: it may have repeated the call elsewhere, and this one has
   * no number by which to tell.
   */
  readonly onlyWhileAwaited?: boolean;
  /**
   * For writes that must not be committed once their client was told of an error. Given an error from the attempt to commit:
   * resolves when the write is committed nevertheless; otherwise throws what to tell, and the write never will be.
   */
  readonly settle?: (error: unknown) => Promise<void>;
}

/**
 * Brings the body of a payload route to where it is committed, and returns once it is. Small bodies are committed here;
 * larger ones go, still compressed, to the hand-over store, and a job with their key to the workers.
 */
export async function commitPayload(context: ApiContext, request: FastifyRequest, work: PayloadWork): Promise<void> {
  const { config, metrics } = context;
  const timer = metrics.commitSeconds.labels(work.kind).startTimer();
  const encoding = bodyEncoding(request);
  const declared = declaredBytes(request);
  if (declared !== null) metrics.commitBytes.labels(work.kind).inc(declared);
  if (declared !== null && declared <= config.limits.directBytes) {
    const { directBytes: maxBytes, minBodyBytesPerSecond } = config.limits;
    const body = await collectBody(request.raw, declared, { maxBytes, minBodyBytesPerSecond });
    if (work.onlyWhileAwaited) await assertAwaited(request.raw);
    if (claimedBytes(body, encoding) <= maxDirectInflatedBytes) {
      await settled(commitDirectly(context, work, { body, encoding, share: shareOf(request) }), work);
    } else {
      await handOver(context, request, work, { body: bytesOf(body)(), encoding, declared });
    }
  } else {
    await handOver(context, request, work, {
      body: unbroken(request.raw, config.limits.minBodyBytesPerSecond),
      encoding,
      declared,
    });
  }
  timer();
}

/** Commits a body in this process; what it takes of the memory for inflated bodies is held until it is committed. */
async function commitDirectly(
  { config, wholeBodies }: ApiContext,
  work: PayloadWork,
  { body, encoding, share }: { body: Buffer; encoding: BodyEncoding; share: string },
): Promise<void> {
  const { maxBatchBytes, maxBodyBytes } = config.limits;
  const maxInflatedBytes = Math.min(maxBatchBytes, maxBodyBytes, maxDirectInflatedBytes);
  const waitMs = work.waitForRoom ? patientWaitMs : repeatedWaitMs;
  let release = (): void => {};
  const inflate = async (maxBytes: number, weight: number): Promise<Buffer> => {
    const inflated = await wholeBodies.inflate(body, encoding, { maxBytes, weight, waitMs, share });
    release = inflated.release;
    return inflated.body;
  };
  const opened: DirectPayload['opened'] = async () => {
    try {
      const inflated = await (work.kind === 'delta'
        ? inflate(maxInflatedBytes, takenApart)
        : inflate(maxDirectInflatedBytes, keptAsBytes));
      return { body: bytesOf(inflated), encoding: 'identity', inflated };
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError)) throw error;
      // Of several gzip members only the last one's size is known: to be read as a stream, then, like any large body. So is a
      // delta that is too large, and refused there.
      return { body: bytesOf(body), encoding, inflated: null };
    }
  };
  try {
    await work.direct({ opened, inflated: () => inflate(maxInflatedBytes, takenApart) });
  } finally {
    release();
  }
}

async function handOver(
  { config, dispatcher, handover, quotas }: ApiContext,
  request: FastifyRequest,
  work: PayloadWork,
  payload: { body: AsyncIterable<Buffer>; encoding: BodyEncoding; declared: number | null },
): Promise<void> {
  const handoverKey = randomUUID();
  const share = shareOf(request);
  const { inFlightBytes: shareLimit } = await quotas.limitsOf(share);
  const options = {
    maxBytes: config.limits.maxBodyBytes,
    declaredBytes: payload.declared,
    room: work.waitForRoom ? 'imports' : 'writes',
    share,
    shareLimit,
  } as const;
  const { bytes, seal } = await handover.put(handoverKey, payload.body, options).catch((error: unknown) => {
    if (shareLimit === null || !(error instanceof NoRoomError) || !error.isShareLimit) throw error;
    quotas.refused('inFlightBytes');
    throw new TooManyInFlightError(share, shareLimit);
  });
  try {
    if (work.onlyWhileAwaited) await assertAwaited(request.raw);
    // From here on the client may go: what it sent is committed all the same.
    const job = await work.job({ handoverKey, encoding: payload.encoding });
    await settled(dispatcher.run(job, { bytes, seal, share }), work);
  } catch (error) {
    // A job that is still under way, and may be, needs its body.
    if (work.settle || !(error instanceof JobPendingError)) {
      // What became of the job is what the client must hear; a body that stays behind expires.
      await handover
        .delete(handoverKey)
        .catch((fault: unknown) => request.log.debug({ err: fault }, 'body could not be deleted; it will expire'));
    }
    throw error;
  }
}

/** Whose part of room, memory and workers a call counts to. */
function shareOf(request: FastifyRequest): string {
  return (request.params as { organization: string }).organization;
}

async function settled(commit: Promise<void>, { settle }: PayloadWork): Promise<void> {
  if (settle) await commit.catch(settle);
  else await commit;
}
