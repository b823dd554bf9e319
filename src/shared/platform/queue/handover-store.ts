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
  /** The body, as often as asked. Throws UnavailableError when it is not (or no longer) there. */
  open(key: string): AsyncIterable<Buffer>;
  delete(key: string): Promise<void>;
  bytesHeld(): number;
}
