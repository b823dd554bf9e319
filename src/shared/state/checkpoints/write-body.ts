import type { BodyEncoding, ByteSource } from './byte-source.ts';

/** A body that can be read several times. */
export interface OpenedBody {
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
  /** The whole body, if it is already inflated and in memory. */
  readonly inflated: Buffer | null;
  /** Set where a worker can take over: documents larger than this many bytes must not be read here. */
  readonly maxBaseBytes?: number;
  /** Frees the memory of the body before the commit; the body cannot be read again. */
  readonly free?: () => void;
}

/** The body of a write, in the memory of the API or in the payload store. */
export interface WriteBody {
  /** For work that reads the body as a stream. Set `parsed` if the body is parsed, which takes more memory than its bytes. */
  open(options?: { readonly parsed?: boolean }): Promise<OpenedBody>;
  /** Calls `work` with the whole inflated body and returns its result. Throws PayloadTooLargeError, InvalidRequestError. */
  use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T>;
}
