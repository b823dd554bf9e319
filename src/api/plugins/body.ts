import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type BodyBuffer, type InflatedBody, parsedWeight } from '../../shared/documents/body-buffer.ts';
import type { BodyEncoding } from '../../shared/documents/byte-source.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import {
  InvalidRequestError,
  PayloadTooLargeError,
  SlowRequestError,
  UnsupportedMediaTypeError,
} from '../../shared/platform/errors/errors.ts';
import { parseInTurns } from '../../shared/platform/json/parse-in-turns.ts';
import { withTimeout } from '../../shared/platform/timeout/with-timeout.ts';
import { sendContinue } from '../server/unread-bodies.ts';

/** Control bodies may have as many bytes, unless the settings say more or less: the largest fields, and what is around them. */
const ordinaryBytes = 4 * 1024 * 1024;
const fieldsOfABody = 4;

/** Longest wait of a control call for a share of the memory for inflated bodies, in ms. */
const inflateWaitMs = 30_000;

/** How long a client may be slow: at first, and after it has sent much; in ms. The latter is also the longest silence. */
const firstPatienceMs = 15_000;
const longestPatienceMs = 60_000;

/** What it takes to read a body: the limits, and the memory for those that are held whole. */
export interface BodyParts {
  readonly config: Config;
  readonly bodyBuffer: BodyBuffer;
}

/** JSON bodies of all routes but those that read their payload themselves. */
export function registerBody(app: FastifyInstance, parts: BodyParts): void {
  const { maxControlBodyBytes, maxFieldBytes } = parts.config.limits;
  const maxBytes = Math.min(maxControlBodyBytes, Math.max(ordinaryBytes, fieldsOfABody * maxFieldBytes));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest) => {
    const { config: route, schema } = request.routeOptions;
    // A body that the route does not ask for is not even read.
    if (route.body === 'payload' || schema?.body === undefined) return undefined;
    const { body, release } = await receiveBody(parts, request, maxBytes);
    try {
      return body.length === 0 ? undefined : await parseInTurns(body);
    } finally {
      release();
    }
  });
}

/**
 * The body of a control call, inflated. What it takes of the memory for such bodies, from its first byte on, is held until it is
 * released. Throws PayloadTooLargeError, InvalidRequestError, SlowRequestError, and UnavailableError when there is no room.
 */
export async function receiveBody(
  { config, bodyBuffer }: BodyParts,
  request: FastifyRequest,
  maxBytes: number,
): Promise<InflatedBody> {
  const encoding = bodyEncoding(request);
  const share = (request.params as { organization?: string }).organization ?? '';
  const bounds = { declaredBytes: declaredBytes(request), maxBytes, share };
  assertMayCome(bounds.declaredBytes, maxBytes);
  const arrived = await bodyBuffer.receive(checkedBody(request.raw, config.limits.minBodyBytesPerSecond), bounds);
  try {
    const options = { maxBytes, weight: parsedWeight, waitMs: inflateWaitMs, share };
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

function assertMayCome(declared: number | null, maxBytes: number): void {
  if (declared !== null && declared > maxBytes)
    throw new PayloadTooLargeError(`The body has ${declared} bytes; this call accepts at most ${maxBytes}`);
}

/** How the body is encoded. Throws UnsupportedMediaTypeError for encodings that we do not take. */
export function bodyEncoding(request: FastifyRequest): BodyEncoding {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding === 'gzip' || encoding === 'x-gzip') return 'gzip';
  if (encoding === 'identity' || encoding === '') return 'identity';
  throw new UnsupportedMediaTypeError(
    `Content-Encoding ${JSON.stringify(encoding.slice(0, 40))} is not supported; send gzip or none`,
  );
}

/** Content-Length, or null for a chunked body. */
export function declaredBytes(request: FastifyRequest): number | null {
  const header = request.headers['content-length'];
  return header === undefined ? null : Number(header);
}

/**
 * The whole body as it came. Throws PayloadTooLargeError, as soon as that is certain, InvalidRequestError when it breaks off, and
 * SlowRequestError.
 */
export async function collectBody(
  payload: IncomingBody,
  declared: number | null,
  { maxBytes, minBodyBytesPerSecond }: { maxBytes: number; minBodyBytesPerSecond: number },
): Promise<Buffer> {
  const tooLarge = () =>
    new PayloadTooLargeError(`The body is larger than the ${maxBytes} bytes that this call accepts`);
  assertMayCome(declared, maxBytes);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of checkedBody(payload, minBodyBytesPerSecond)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

/**
 * Passes the body on; one that the client breaks off ends in InvalidRequestError, never as if it were whole. A client that sends
 * less than `minBytesPerSecond` while it is waited for is cut off with SlowRequestError: what it has sent takes up room that
 * others need. It has some seconds in hand at first, and up to a minute once it has sent more than it had to.
 */
export async function* checkedBody(payload: IncomingBody, minBytesPerSecond: number): AsyncGenerator<Buffer> {
  const iterator = payload.iterator?.({ destroyOnReturn: false }) ?? payload[Symbol.asyncIterator]();
  let patienceMs = firstPatienceMs;
  let ended = false;
  sendContinue(payload);
  try {
    for (;;) {
      const askedAt = performance.now();
      const next = await withinPatience(iterator.next(), patienceMs, minBytesPerSecond);
      ended = next.done === true;
      if (next.done) return;
      const left = Math.max(patienceMs - (performance.now() - askedAt), 0);
      patienceMs = Math.min(left + (next.value.length / minBytesPerSecond) * 1000, longestPatienceMs);
      yield next.value;
    }
  } catch (error) {
    ended = !(error instanceof SlowRequestError);
    throw ended ? new InvalidRequestError('The body was cut off', { cause: error }) : error;
  } finally {
    // The refusal is to reach the client: Node would close the connection, or wait for the rest before it sends the answer.
    if (!ended) void stopReading(iterator, payload);
  }
}

async function stopReading(iterator: AsyncIterator<Buffer>, payload: IncomingBody): Promise<void> {
  payload.resume?.();
  await iterator.return?.().catch(() => {});
  payload.resume?.();
}

/** A request's body, or any other stream of bytes. */
type IncomingBody = AsyncIterable<Buffer> & Partial<Pick<Readable, 'iterator' | 'resume'>>;

async function withinPatience<T>(next: Promise<T>, patienceMs: number, minBytesPerSecond: number): Promise<T> {
  return withTimeout(
    next,
    patienceMs,
    () =>
      new SlowRequestError(
        `The body arrived more slowly than the ${minBytesPerSecond} bytes per second that this server requires`,
      ),
  );
}
