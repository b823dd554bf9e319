import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyRequest } from 'fastify';
import { type BodyEncoding, type ByteSource, bytesOf, inflateWhole } from '../../shared/checkpoints/byte-source.ts';
import { InvalidRequestError, PayloadTooLargeError } from '../../shared/platform/errors/errors.ts';
import { JobPendingError } from '../../shared/platform/queue/dispatcher.ts';
import type { Job } from '../../shared/platform/queue/jobs.ts';
import type { ApiContext } from '../api-context.ts';
import { bodyEncoding, collectBody, declaredBytes, unbroken } from '../plugins/body.ts';

/** Bodies that claim to inflate to more than this are a worker's work, however small they came. */
const maxDirectInflatedBytes = 8 * 1024 * 1024;

/** A small body, for the API itself to commit. */
export interface DirectPayload {
  /** The body to be read several times: inflated once for all, unless it turns out larger than it claims. */
  readonly opened: () => Promise<{ body: ByteSource; encoding: BodyEncoding }>;
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
    const body = await collectBody(request.raw, declared, config.limits.directBytes);
    if (work.onlyWhileAwaited) await assertAwaited(request.raw);
    const { maxBatchBytes, maxBodyBytes } = config.limits;
    if (claimedBytes(body, encoding) <= maxDirectInflatedBytes) {
      await work.direct({
        opened: () => openWhole(body, encoding),
        inflated: () => inflateWhole(body, encoding, Math.min(maxBatchBytes, maxBodyBytes, maxDirectInflatedBytes)),
      });
    } else {
      await handOver(context, request, work, { body: bytesOf(body)(), encoding, declared });
    }
  } else {
    await handOver(context, request, work, { body: unbroken(request.raw), encoding, declared });
  }
  timer();
}

async function handOver(
  { config, dispatcher, handover }: ApiContext,
  request: FastifyRequest,
  work: PayloadWork,
  payload: { body: AsyncIterable<Buffer>; encoding: BodyEncoding; declared: number | null },
): Promise<void> {
  const handoverKey = randomUUID();
  const { bytes } = await handover.put(handoverKey, payload.body, {
    maxBytes: config.limits.maxBodyBytes,
    declaredBytes: payload.declared,
    wait: work.waitForRoom === true,
  });
  try {
    if (work.onlyWhileAwaited) await assertAwaited(request.raw);
    // From here on the client may go: what it sent is committed all the same.
    const share = (request.params as { organization: string }).organization;
    await dispatcher.run(await work.job({ handoverKey, encoding: payload.encoding }), { bytes, share });
  } catch (error) {
    // A job that is still under way needs its body.
    if (!(error instanceof JobPendingError)) {
      // What became of the job is what the client must hear; a body that stays behind expires.
      await handover
        .delete(handoverKey)
        .catch((fault: unknown) => request.log.debug({ err: fault }, 'body left to its expiry'));
    }
    throw error;
  }
}

/** Throws when the client has closed the connection. */
async function assertAwaited({ socket }: IncomingMessage): Promise<void> {
  // The end of the connection stands behind the body in the kernel's buffer: one turn may end with the body.
  for (let turn = 0; turn < 2; turn++) await nextTurn();
  if (socket.destroyed || socket.readableEnded) throw new InvalidRequestError('The client has gone');
}

async function openWhole(bytes: Buffer, encoding: BodyEncoding): Promise<{ body: ByteSource; encoding: BodyEncoding }> {
  try {
    return { body: bytesOf(await inflateWhole(bytes, encoding, maxDirectInflatedBytes)), encoding: 'identity' };
  } catch (error) {
    if (!(error instanceof PayloadTooLargeError)) throw error;
    // Of several gzip members only the last one's size is known: to be read as a stream, then, like any large body.
    return { body: bytesOf(bytes), encoding };
  }
}

/** Size that a gzip body states at its end (modulo 4 GiB); a body that turns out larger is refused. */
function claimedBytes(body: Buffer, encoding: BodyEncoding): number {
  if (encoding === 'identity' || body.length < 18) return body.length;
  return body.readUInt32LE(body.length - 4);
}
