import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { joined } from '../../../shared/platform/bytes/buffers.ts';
import { bytesOf } from '../../../shared/platform/bytes/byte-source.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import {
  InvalidRequestError,
  PayloadTooLargeError,
  SlowRequestError,
  UnsupportedMediaTypeError,
} from '../../../shared/platform/errors/errors.ts';
import { parseInSlices } from '../../../shared/platform/json/parse-in-slices.ts';
import { type BodyBuffer, type BufferedBody, parsedWeight } from '../../../shared/platform/payloads/body-buffer.ts';
import { type BodyEncoding, claimedBytes } from '../../../shared/platform/payloads/inflate.ts';
import { withTimeout } from '../../../shared/platform/timeout/with-timeout.ts';
import { sendContinue } from '../server/unread-bodies.ts';
import { whileConnected } from './awaited.ts';
import type { Caller } from './request.ts';

/** The limit of control bodies: this value, or the size of `maxFieldsPerBody` of the largest fields, up to the configured maximum. */
const defaultMaxBytes = 4 * 1024 * 1024;
const maxFieldsPerBody = 4;

const formType = /^application\/x-www-form-urlencoded *(;|$)/i;
const maxFormBytes = 64 * 1024;

/** A control call waits this long for memory for its inflated body. */
const inflateWaitMs = 30_000;

/** A sender's time credit at the start, and its maximum, which is also the longest silence. */
const initialCreditMs = 15_000;
const maxCreditMs = 60_000;

/** Bodies that declare a larger inflated size go to a worker, however few bytes arrive. The same applies to deltas of a larger document. */
export const maxDirectInflatedBytes = 8 * 1024 * 1024;

export interface BodyParts {
  readonly config: Config;
  readonly bodyBuffer: BodyBuffer;
}

/** Parses JSON bodies, except for routes that read their payload themselves. */
export function registerBody(app: FastifyInstance, parts: BodyParts): void {
  const { maxControlBodyBytes, maxFieldBytes } = parts.config.limits;
  const maxBytes = Math.min(maxControlBodyBytes, Math.max(defaultMaxBytes, maxFieldsPerBody * maxFieldBytes));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest) => {
    const { config: route, schema } = request.routeOptions;
    // A body that the route does not declare is not read.
    if (route.body === 'payload' || schema?.body === undefined) return undefined;
    const isForm = route.body === 'form';
    if (isForm && !formType.test(request.headers['content-type'] ?? ''))
      throw new UnsupportedMediaTypeError('This call takes a form: application/x-www-form-urlencoded');
    const { body, release } = await receiveBody(parts, request, isForm ? maxFormBytes : maxBytes);
    try {
      if (isForm) return Object.fromEntries(new URLSearchParams(body.toString('utf8')));
      return body.length === 0 ? undefined : await parseInSlices(body);
    } finally {
      release();
    }
  });
}

/**
 * Receives and inflates the body of a control call. It counts against the memory for buffered bodies from its first byte until `release`.
 * Throws PayloadTooLargeError, InvalidRequestError, SlowRequestError, and UnavailableError when out of memory.
 */
export async function receiveBody(
  { config, bodyBuffer }: BodyParts,
  request: FastifyRequest,
  maxBytes: number,
  caller: Pick<Caller, 'tokenId' | 'userId'> | null = request.caller,
): Promise<BufferedBody> {
  const encoding = bodyEncoding(request);
  const fairnessKey = (request.params as { organization?: string }).organization ?? keyOf(caller);
  const bounds = { declaredBytes: declaredBytes(request), maxBytes, fairnessKey };
  assertDeclaredSize(bounds.declaredBytes, maxBytes);
  const arrived = await whileConnected(request.raw, (gone) =>
    bodyBuffer.arrivals.receive(checkedBody(request.raw, config.limits.minBodyBytesPerSecond), { ...bounds, gone }),
  );
  try {
    const options = { maxBytes, weight: parsedWeight, waitMs: inflateWaitMs, fairnessKey };
    const inflated = await bodyBuffer.inflate(arrived.body, encoding, options);
    if (encoding === 'gzip') {
      arrived.release();
      return inflated;
    }
    const release = (): void => {
      inflated.release();
      arrived.release();
    };
    return { body: inflated.body, release };
  } catch (error) {
    arrived.release();
    throw error;
  }
}

/** The key of a call without an organization. No organization has a name of this form. */
function keyOf(caller: Pick<Caller, 'tokenId' | 'userId'> | null): string {
  return caller ? `user ${caller.userId ?? caller.tokenId}` : '';
}

function assertDeclaredSize(declared: number | null, maxBytes: number): void {
  if (declared !== null && declared > maxBytes)
    throw new PayloadTooLargeError(`The body has ${declared} bytes; this call accepts at most ${maxBytes}`);
}

export function bodyEncoding(request: FastifyRequest): BodyEncoding {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding === 'gzip' || encoding === 'x-gzip') return 'gzip';
  if (encoding === 'identity' || encoding === '') return 'identity';
  throw new UnsupportedMediaTypeError(
    `Content-Encoding ${JSON.stringify(encoding.slice(0, 40))} is not supported; send gzip or none`,
  );
}

/** Null for a chunked body. */
export function declaredBytes(request: FastifyRequest): number | null {
  const header = request.headers['content-length'];
  return header === undefined ? null : Number(header);
}

export interface PayloadBody {
  readonly encoding: BodyEncoding;
  readonly declared: number | null;
  /** The whole body if the API commits it itself. */
  readonly direct: Buffer | null;
  /** The body for a worker, still compressed. */
  readonly stream: AsyncIterable<Buffer>;
}

/**
 * Buffers a small body (up to `HOLDFAST_DIRECT_BYTES`, as sent) and leaves a larger one as a stream. Throws UnsupportedMediaTypeError,
 * PayloadTooLargeError, InvalidRequestError and SlowRequestError.
 */
export async function readBody(request: FastifyRequest, { limits }: Pick<Config, 'limits'>): Promise<PayloadBody> {
  const encoding = bodyEncoding(request);
  const declared = declaredBytes(request);
  const { directBytes: maxBytes, minBodyBytesPerSecond } = limits;
  if (declared === null || declared > maxBytes) {
    return { encoding, declared, direct: null, stream: checkedBody(request.raw, minBodyBytesPerSecond) };
  }
  const body = await collectBody(request.raw, declared, { maxBytes, minBodyBytesPerSecond });
  const isSmall = claimedBytes(body, encoding) <= maxDirectInflatedBytes;
  return { encoding, declared, direct: isSmall ? body : null, stream: bytesOf(body)() };
}

/**
 * Does not inflate the body. Throws PayloadTooLargeError as soon as it is known to exceed the limit, InvalidRequestError if it is cut off,
 * and SlowRequestError.
 */
async function collectBody(
  payload: IncomingBody,
  declared: number | null,
  { maxBytes, minBodyBytesPerSecond }: { maxBytes: number; minBodyBytesPerSecond: number },
): Promise<Buffer> {
  const tooLarge = () =>
    new PayloadTooLargeError(`The body is larger than the ${maxBytes} bytes that this call accepts`);
  assertDeclaredSize(declared, maxBytes);
  const arrived = arrivedBody(payload, declared);
  if (arrived) return arrived;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of checkedBody(payload, minBodyBytesPerSecond)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return joined(chunks);
}

/** A body that arrived with its headers, as small bodies usually do: it needs no stream and no timers. */
function arrivedBody(payload: IncomingBody, declared: number | null): Buffer | null {
  if (!declared || payload.complete !== true || payload.readableLength !== declared) return null;
  return (payload.read?.() as Buffer | null | undefined) ?? null;
}

/**
 * Throws InvalidRequestError if the client cuts the body off, so that a partial body never looks complete, and SlowRequestError if the
 * client sends less than `minBytesPerSecond` while the server waits: the received data takes memory that others need. The client starts
 * with a time credit of a few seconds and earns up to a minute by sending faster.
 */
export async function* checkedBody(payload: IncomingBody, minBytesPerSecond: number): AsyncGenerator<Buffer> {
  const iterator = payload.iterator?.({ destroyOnReturn: false }) ?? payload[Symbol.asyncIterator]();
  let creditMs = initialCreditMs;
  let ended = false;
  sendContinue(payload);
  try {
    for (;;) {
      const waitingSince = performance.now();
      const next = await withinCredit(iterator.next(), creditMs, minBytesPerSecond);
      ended = next.done === true;
      if (next.done) return;
      const left = Math.max(creditMs - (performance.now() - waitingSince), 0);
      creditMs = Math.min(left + (next.value.length / minBytesPerSecond) * 1000, maxCreditMs);
      yield next.value;
    }
  } catch (error) {
    ended = !(error instanceof SlowRequestError);
    throw ended ? new InvalidRequestError('The body was cut off', { cause: error }) : error;
  } finally {
    // Lets the error response reach the client. Node would otherwise close the connection, or wait for the rest of the body first.
    if (!ended) void stopReading(iterator, payload);
  }
}

async function stopReading(iterator: AsyncIterator<Buffer>, payload: IncomingBody): Promise<void> {
  payload.resume?.();
  await iterator.return?.().catch(() => {});
  payload.resume?.();
}

type IncomingBody = AsyncIterable<Buffer> &
  Partial<Pick<IncomingMessage, 'complete' | 'iterator' | 'read' | 'readableLength' | 'resume'>>;

async function withinCredit<T>(next: Promise<T>, creditMs: number, minBytesPerSecond: number): Promise<T> {
  return withTimeout(
    next,
    creditMs,
    () =>
      new SlowRequestError(
        `The body arrived more slowly than the ${minBytesPerSecond} bytes per second that this server requires`,
      ),
  );
}
