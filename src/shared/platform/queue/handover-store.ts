import { UnavailableError } from '../errors/errors.ts';

export interface HandoverOptions {
  readonly maxBytes: number;
  /** Content-Length, when the client gave it. */
  readonly declaredBytes: number | null;
  /** Whether to wait for room rather than refuse. */
  readonly wait: boolean;
}

/** Keeps request bodies between the process that received them and the worker that stores them. */
export interface HandoverStore {
  /**
   * Takes in a body as it arrives. Rejects with PayloadTooLargeError above `maxBytes`, with UnavailableError when the store
   * has no room (`wait: false`) and with the body's own error when that breaks off; nothing is kept then.
   */
  put(key: string, body: AsyncIterable<Buffer>, options: HandoverOptions): Promise<{ bytes: number }>;
  /** The body, as often as asked. Throws HandoverMissingError. */
  open(key: string): AsyncIterable<Buffer>;
  delete(key: string): Promise<void>;
  bytesHeld(): number;
  /** Resolves when the store answers; throws UnavailableError when it has not within `limitMs`. */
  check(limitMs: number): Promise<void>;
}

/** The body is not (or no longer) there: it was done with, it expired, or Redis lost it. Only the client has it now. */
export class HandoverMissingError extends UnavailableError {
  override readonly name = 'HandoverMissingError';
  override readonly code = 'handover-missing';
  constructor() {
    super('The body of this call is no longer there; please repeat the call', { retryAfterSeconds: 1 });
  }
}
