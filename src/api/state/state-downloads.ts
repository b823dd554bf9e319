import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { AdmitBlob, StateDocument } from '../../shared/state/state-reader.ts';
import { largeGzip } from '../platform/http/large-gzip.ts';
import type { Caller } from '../platform/http/request.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import { FairSemaphore, type SemaphoreLimits } from '../platform/slices/fair-semaphore.ts';

/** A slow reader keeps a connection to the blob store, of which a process has 128. Others wait, and get 503 after this time. */
const limits: SemaphoreLimits = {
  ...{ atOnce: 96, atOncePerCaller: 64, atOncePerOrganization: 64 },
  ...{ waiting: 512, waitingPerCaller: 512, waitMs: 20_000 },
};

/** The call of a client that gets a state. */
interface Download {
  readonly caller: Pick<Caller, 'tokenId' | 'userId'>;
  readonly organization: string;
  readonly reply: FastifyReply;
}

/** Keeps connections to the blob store free while states are sent as streams. */
export class StateDownloads {
  readonly #downloads = new FairSemaphore(limits);

  /** What admits the blob of this download. It throws UnavailableError if too many are open, or once the client is gone. */
  of({ caller, organization, reply }: Download): AdmitBlob {
    const gone = clientGone(reply);
    return () => this.#downloads.take({ ...caller, organization }, gone);
  }
}

/** Sends a state as it is stored, as a stream. */
export function sendState(request: FastifyRequest, reply: FastifyReply, state: StateDocument): FastifyReply {
  if (state.warning !== null) void reply.header(warningHeader, asHeader(state.warning));
  void reply.type('application/json; charset=utf-8');
  const zipped = largeGzip(request, reply, state);
  if (zipped) return reply.send(zipped);
  // The length exposes a truncated response: proxies end a chunked one as if it were complete. The header is removed if the
  // response is compressed; gzip marks its own end.
  void reply.header('content-length', state.sizeBytes);
  return reply.send(Readable.from(state.bytes, { objectMode: false }));
}
