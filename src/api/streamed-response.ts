import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { Turns } from '../shared/platform/turns/turns.ts';

/** Bytes that are read from the database at once for an answer that is written in pieces. */
export const chunkBytes = 256 * 1024;
/** Pieces are put together up to this size before they are written. */
const chunkChars = 64 * 1024;

/** How long a client may leave a piece of its answer unread, in ms: what the answer is made of takes up memory meanwhile. */
const patienceMs = 60_000;

/**
 * Answers with JSON that is made while it is sent, a piece in memory at a time, no faster than the client reads. What fails before
 * the first piece is answered as an error; after it the connection breaks off.
 */
export async function sendChunks(
  reply: FastifyReply,
  pieces: AsyncGenerator<string>,
  { stallMs = patienceMs }: { stallMs?: number } = {},
): Promise<FastifyReply> {
  const chunks = inChunks(pieces);
  const first = await chunks.next();
  const giveUp = (): void => void reply.raw.destroy(new Error('The client does not read the response'));
  const bytes = async function* (): AsyncGenerator<Buffer> {
    const turns = new Turns();
    try {
      for (let next = first; !next.done; next = await chunks.next()) {
        const chunk = Buffer.from(next.value);
        const timer = setTimeout(giveUp, stallMs).unref();
        try {
          yield chunk;
        } finally {
          clearTimeout(timer);
        }
        await turns.spend(chunk.length);
      }
    } finally {
      await chunks.return(undefined);
    }
  };
  const body = bytes();
  // A generator that was never begun does not run its `finally`: the answer may be given up before its first byte is asked for.
  const stream = Readable.from(body, { objectMode: false });
  stream.once('close', () => void chunks.return(undefined).catch(() => {}));
  return reply.type('application/json; charset=utf-8').send(stream);
}

async function* inChunks(pieces: AsyncGenerator<string>): AsyncGenerator<string> {
  let parts: string[] = [];
  let chars = 0;
  for await (const piece of pieces) {
    parts.push(piece);
    chars += piece.length;
    if (chars < chunkChars) continue;
    yield parts.join('');
    parts = [];
    chars = 0;
  }
  if (chars > 0) yield parts.join('');
}

/** A JSON string of a text in pieces, none of which ends within a surrogate pair. */
export async function* jsonString(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  yield '"';
  for await (const piece of pieces) yield JSON.stringify(piece).slice(1, -1);
  yield '"';
}
