import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { StateDocument } from '../../shared/state/state-reader.ts';
import { largeGzip } from '../platform/http/large-gzip.ts';
import type { Caller } from '../platform/http/request.ts';
import { FairSemaphore } from '../platform/slices/fair-semaphore.ts';

/** Smaller states are sent from memory. */
const longBytes = 1024 * 1024;
/** A slow reader keeps a connection to the blob store, of which a process has 128. Others wait, and get 503 after this time. */
const downloadLimits = { atOnce: 96, atOncePerCaller: 32, waiting: 512, waitingPerCaller: 512, waitMs: 20_000 };

/** Sends states as they are stored, as streams. */
export class StateDownloads {
  readonly #downloads = new FairSemaphore(downloadLimits);

  /** Throws UnavailableError if too many responses are under way, to all callers or to this one. */
  async send(
    request: FastifyRequest,
    reply: FastifyReply,
    { caller, state }: { readonly caller: Pick<Caller, 'tokenId' | 'userId'>; readonly state: StateDocument },
  ): Promise<FastifyReply> {
    if (state.sizeBytes > longBytes) {
      const end = await this.#downloads.take(caller, null).catch(async (error: unknown) => {
        await state.bytes[Symbol.asyncIterator]().return?.();
        throw error;
      });
      if (reply.raw.closed) end();
      else reply.raw.once('close', end);
    }
    return sendState(request, reply, state);
  }
}

function sendState(request: FastifyRequest, reply: FastifyReply, state: StateDocument): FastifyReply {
  if (state.warning !== null) void reply.header(warningHeader, asHeader(state.warning));
  void reply.type('application/json; charset=utf-8');
  const zipped = largeGzip(request, reply, state);
  if (zipped) return reply.send(zipped);
  // The length exposes a truncated response: proxies end a chunked one as if it were complete. The header is removed if the
  // response is compressed; gzip marks its own end.
  void reply.header('content-length', state.sizeBytes);
  return reply.send(Readable.from(state.bytes, { objectMode: false }));
}
