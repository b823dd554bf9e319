import { pipeline, Readable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Documents up to this size are compressed like all other responses. */
const minBytes = 1024 * 1024;
/**
 * A document that zstd could not shrink below this part of its size has few repetitions. Gzip would spend 33 of 36 ms/MB on searching for
 * them, at any level, and save a tenth.
 */
const denseRatio = 0.5;
const chunkBytes = 64 * 1024;

/** Sizes as text and as stored. */
interface LargeDocument {
  readonly sizeBytes: number;
  readonly storedBytes: number | null;
  readonly bytes: AsyncIterable<Buffer>;
}

/**
 * Compresses a large response at a level that keeps up with reading it. Null if the response is not large, or the client does not plainly
 * accept gzip: the general rules for compression apply then.
 */
export function gzipDocument(request: FastifyRequest, reply: FastifyReply, document: LargeDocument): Readable | null {
  const { sizeBytes, storedBytes } = document;
  if (sizeBytes <= minBytes || request.method === 'HEAD' || !acceptsGzip(request)) return null;
  const isDense = storedBytes !== null && storedBytes > sizeBytes * denseRatio;
  const strategy = isDense ? constants.Z_HUFFMAN_ONLY : constants.Z_DEFAULT_STRATEGY;
  void reply.header('content-encoding', 'gzip').header('vary', 'accept-encoding');
  const encoder = createGzip({ level: 1, strategy, chunkSize: chunkBytes });
  // An error of the document destroys the encoder, and with it the connection: a response never ends well-formed and short.
  return pipeline(Readable.from(document.bytes), encoder, () => {});
}

function acceptsGzip({ headers }: FastifyRequest): boolean {
  if (headers['x-no-compression'] !== undefined) return false;
  return String(headers['accept-encoding'] ?? '')
    .split(',')
    .some((name) => name.trim().toLowerCase() === 'gzip');
}
