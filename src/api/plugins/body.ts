import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type BodyEncoding, inflateWhole } from '../../shared/checkpoints/byte-source.ts';
import {
  InvalidRequestError,
  PayloadTooLargeError,
  UnsupportedMediaTypeError,
} from '../../shared/platform/errors/errors.ts';
import { JsonScanner } from '../../shared/platform/json/json-scanner.ts';

/** Nesting that a control body may have; deployments and events have their own, wider limit. */
const maxControlDepth = 500;

/**
 * Values that a control body may have: 64 MiB of `{},{},…` come as 64 KiB of gzip and take 2 GB and 9 s to parse.
 * A million of them take about 100 MB.
 */
const maxControlValues = 1_000_000;

/** Longest silence in the middle of a body, in ms. */
const bodyStallMs = 60_000;

/** JSON bodies of all routes but those that read their payload themselves. */
export function registerBody(app: FastifyInstance, limits: { maxControlBodyBytes: number }): void {
  app.decorateRequest('rawBody', null as unknown as Buffer);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.routeOptions.config.body === 'payload') return undefined;
    const encoding = bodyEncoding(request);
    const encoded = await collectBody(payload, declaredBytes(request), limits.maxControlBodyBytes);
    const body = await inflateWhole(encoded, encoding, limits.maxControlBodyBytes);
    request.rawBody = body;
    return body.length === 0 ? undefined : parseJson(body);
  });
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

/** The whole body as it came. Throws PayloadTooLargeError, as soon as that is certain, and InvalidRequestError when it breaks off. */
export async function collectBody(payload: IncomingBody, declared: number | null, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new PayloadTooLargeError(`The body is larger than the ${maxBytes} bytes that this call takes`);
  if (declared !== null && declared > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of unbroken(payload)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
}

/**
 * Passes the body on; one that the client breaks off ends in InvalidRequestError, never as if it were whole. A client that
 * sends nothing for `bodyStallMs` is cut off: what it has sent takes up room that others wait for.
 */
export async function* unbroken(payload: IncomingBody): AsyncGenerator<Buffer> {
  payload.setTimeout?.(bodyStallMs);
  try {
    yield* payload;
  } catch (error) {
    throw new InvalidRequestError('The body broke off', { cause: error });
  } finally {
    // The wait for the commit has its own limit.
    payload.setTimeout?.(0);
  }
}

/** A request's body; the time limit is the socket's, which Node closes when it is over. */
type IncomingBody = AsyncIterable<Buffer> & { setTimeout?: (ms: number) => unknown };

function parseJson(body: Buffer): unknown {
  assertFewValues(body);
  const scanner = new JsonScanner({ reportDepth: -1, onValue: () => {}, maxDepth: maxControlDepth });
  scanner.write(body);
  scanner.end();
  return JSON.parse(body.toString('utf8')) as unknown;
}

/** Counts what values begin with or are parted by; inside of strings too, which only errs on the safe side. */
function assertFewValues(body: Buffer): void {
  if (body.length <= maxControlValues) return;
  let values = 1;
  for (const mark of [0x2c, 0x5b, 0x7b]) {
    for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + 1)) {
      if (++values > maxControlValues)
        throw new PayloadTooLargeError(`The body has more than the ${maxControlValues} values that this call takes`);
    }
  }
}
