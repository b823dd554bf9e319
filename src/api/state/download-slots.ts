import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { AdmitBlob, StateDocument } from '../../shared/state/state-reader.ts';
import { blobDownloads } from '../platform/admission/blob-downloads.ts';
import { FairSemaphore, type SemaphoreLimits } from '../platform/admission/fair-semaphore.ts';
import { gzipDocument } from '../platform/http/gzip-document.ts';
import type { Caller } from '../platform/http/request.ts';
import { clientGone } from '../platform/server/client-gone.ts';

/** Outputs are in memory as a whole, 8 MiB and more, until their client has them. Small outputs do not count. */
const outputLimits: SemaphoreLimits = {
  ...{ atOnce: 16, atOncePerCaller: 8, atOncePerOrganization: 8 },
  // The CLI repeats a call that exceeds the common limit, but not a call that exceeds the limit of its caller.
  ...{ waiting: 16, waitingPerCaller: 17, waitMs: 20_000 },
};
const smallBytes = 64 * 1024;

interface Download {
  readonly caller: Pick<Caller, 'tokenId' | 'userId'>;
  readonly organization: string;
  readonly reply: FastifyReply;
}

/** Keeps connections to the blob store free while states are streamed. */
export class StateDownloads {
  readonly #downloads: FairSemaphore;
  readonly #outputs = new FairSemaphore(outputLimits);

  constructor(blobs: BlobStore) {
    this.#downloads = blobDownloads(blobs);
  }

  /** Throws UnavailableError if too many downloads are open, or once the client is gone. */
  of({ caller, organization, reply }: Download): AdmitBlob {
    const gone = clientGone(reply);
    return () => this.#downloads.take({ ...caller, organization }, gone);
  }

  /** Throws OwnQueueError, UnavailableError. */
  async admitOutputs({ caller, organization, reply }: Download, bytes: number): Promise<void> {
    if (bytes <= smallBytes) return;
    const { raw } = reply;
    const end = await this.#outputs.take({ ...caller, organization }, clientGone(reply));
    if (raw.closed) end();
    else raw.once('finish', end).once('close', end);
  }
}

/** Streams a state as it is stored. */
export function sendState(request: FastifyRequest, reply: FastifyReply, state: StateDocument): FastifyReply {
  if (state.warning !== null) void reply.header(warningHeader, asHeader(state.warning));
  void reply.type('application/json; charset=utf-8');
  const zipped = gzipDocument(request, reply, state);
  if (zipped) return reply.send(zipped);
  // The length exposes a truncated response: proxies end a truncated chunked one as if it were complete. Compression removes the header;
  // gzip marks its own end.
  void reply.header('content-length', state.sizeBytes);
  return reply.send(Readable.from(state.bytes, { objectMode: false }));
}
