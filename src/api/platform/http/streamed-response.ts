import { Readable } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { Slices } from '../../../shared/platform/slices/slices.ts';
import { JsonBytes } from './json-bytes.ts';

export const chunkBytes = 256 * 1024;
/** Chunks are joined until they have this many bytes, and then written. */
const minWriteBytes = 64 * 1024;

/** A client may leave a chunk unread for this long. The chunk takes memory meanwhile. */
const defaultStallMs = 60_000;

/**
 * Responses to HEAD have no body. Fastify would read the streams to their end, as fast as the database answers, whether the client is there
 * or not.
 */
export function registerHeads(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, done) => {
    if (request.method !== 'HEAD' || !(payload instanceof Readable)) return done();
    // An error while the stream ends does not concern the client.
    payload.on('error', () => {}).destroy();
    // Still a stream: Fastify would send the length of anything else.
    done(null, Readable.from([]));
  });
}

/**
 * Responds with text, by default JSON, one chunk in memory at a time, no faster than the client reads. A failure before the first chunk
 * becomes an error response; a later one cuts off the connection.
 */
export async function sendChunks(
  reply: FastifyReply,
  chunks: AsyncIterable<string | Buffer>,
  {
    contentType = 'application/json; charset=utf-8',
    stallMs = defaultStallMs,
  }: { contentType?: string; stallMs?: number } = {},
): Promise<FastifyReply> {
  const writes = joinChunks(chunks);
  const first = await writes.next();
  const abort = (): void => {
    reset(reply);
    reply.raw.destroy(new Error('The client does not read the response'));
  };
  const bytes = async function* (): AsyncGenerator<Buffer> {
    const slices = new Slices();
    try {
      for (let next = first; !next.done; next = await writes.next()) {
        const timer = setTimeout(abort, stallMs).unref();
        try {
          yield next.value;
        } finally {
          clearTimeout(timer);
        }
        await slices.spend(next.value.length);
      }
    } finally {
      await writes.return(undefined);
    }
  };
  const body = bytes();
  // A generator that never started does not run its `finally`, and the response may be aborted before its first byte is read.
  const stream = Readable.from(body, { objectMode: false });
  stream.once('error', () => reset(reply));
  stream.once('close', () => void writes.return(undefined).catch(() => {}));
  return reply.type(contentType).send(stream);
}

/** Over HTTP/1.0, only the end of the connection ends a response without a length, so a cut-off response must not look complete. */
function reset({ raw, request }: FastifyReply): void {
  // TLS marks the end of a connection itself.
  if (request.raw.httpVersion === '1.0' && !(raw.socket instanceof TLSSocket)) raw.socket?.resetAndDestroy();
}

async function* joinChunks(chunks: AsyncIterable<string | Buffer>): AsyncGenerator<Buffer> {
  const json = new JsonBytes();
  for await (const chunk of chunks) {
    if (json.length === 0 && typeof chunk !== 'string' && chunk.length >= minWriteBytes) {
      yield chunk;
      continue;
    }
    json.add(chunk);
    if (json.length >= minWriteBytes) yield json.take();
  }
  if (json.length > 0) yield json.take();
}

/** One JSON string from chunks, none of which may end within a surrogate pair. */
export async function* jsonString(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  yield '"';
  for await (const chunk of chunks) yield JSON.stringify(chunk).slice(1, -1);
  yield '"';
}
