import type { BodyEncoding, ByteSource } from './byte-source.ts';

/** A body that can be read several times. */
export interface OpenedBody {
  readonly body: ByteSource;
  readonly encoding: BodyEncoding;
  /** All of it, when it is inflated and in memory already. */
  readonly inflated: Buffer | null;
}

/** The body of a write, wherever it lies: in the memory of the API, or in the payload store. */
export interface WriteBody {
  /** For work that reads the body as a stream; `parsedWeight` when it is parsed, which takes more memory than its bytes. */
  open(options?: { readonly parsedWeight?: boolean }): Promise<OpenedBody>;
  /** What `work` makes of the whole body, inflated. Throws PayloadTooLargeError, InvalidRequestError. */
  use<T>(work: (inflated: Buffer) => Promise<T>): Promise<T>;
}
