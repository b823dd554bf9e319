import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { AdmitBlob, StateDocument } from '../../shared/state/state-reader.ts';
import { gzipDocument } from '../platform/http/gzip-document.ts';
import type { Caller } from '../platform/http/request.ts';
import { clientGone } from '../platform/server/client-gone.ts';
import { FairSemaphore, type SemaphoreLimits } from '../platform/slices/fair-semaphore.ts';

/** A slow reader keeps a connection to the blob store, of which a process has 128. Others wait, and get 503 after this time. */
const limits: SemaphoreLimits = {
  ...{ atOnce: 96, atOncePerCaller: 64, atOncePerOrganization: 64 },
  ...{ waiting: 512, waitingPerCaller: 512, waitMs: 20_000 },
};

/** Outputs are in memory as a whole, up to 8 MiB and more, until their client has them, and while they wait. Small ones do not count. */
const outputLimits: SemaphoreLimits = {
  ...{ atOnce: 16, atOncePerCaller: 8, atOncePerOrganization: 8 },
  // The CLI repeats a call that is one too many of all, but not one that is too many of its caller.
  ...{ waiting: 16, waitingPerCaller: 17, waitMs: 20_000 },
};
const smallBytes = 64 * 1024;

/** The call of a client that gets a state. */
interface Download {
  readonly caller: Pick<Caller, 'tokenId' | 'userId'>;
  readonly organization: string;
  readonly reply: FastifyReply;
}

/** Keeps connections to the blob store free while states are sent as streams. */
export class StateDownloads {
  readonly #downloads = new FairSemaphore(limits);
  readonly #outputs = new FairSemaphore(outputLimits);

  /** What admits the blob of this download. It throws UnavailableError if too many are open, or once the client is gone. */
  of({ caller, organization, reply }: Download): AdmitBlob {
    const gone = clientGone(reply);
    return () => this.#downloads.take({ ...caller, organization }, gone);
  }

  /** Waits until outputs of this size may be sent. Throws OwnQueueError, UnavailableError. */
  async admitOutputs({ caller, organization, reply }: Download, bytes: number): Promise<void> {
    if (bytes <= smallBytes) return;
    const { raw } = reply;
    const end = await this.#outputs.take({ ...caller, organization }, clientGone(reply));
    if (raw.closed) end();
    else raw.once('finish', end).once('close', end);
  }
}

/** Sends a state as it is stored, as a stream. */
export function sendState(request: FastifyRequest, reply: FastifyReply, state: StateDocument): FastifyReply {
  if (state.warning !== null) void reply.header(warningHeader, asHeader(state.warning));
  void reply.type('application/json; charset=utf-8');
  const zipped = gzipDocument(request, reply, state);
  if (zipped) return reply.send(zipped);
  // The length exposes a truncated response: proxies end a chunked one as if it were complete. The header is removed if the
  // response is compressed; gzip marks its own end.
  void reply.header('content-length', state.sizeBytes);
  return reply.send(Readable.from(state.bytes, { objectMode: false }));
}
