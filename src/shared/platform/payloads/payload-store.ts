import { UnavailableError } from '../errors/errors.ts';
import type { RoomName } from './room-rules.ts';

export interface PayloadOptions {
  readonly maxBytes: number;
  /** Content-Length, when the client gave it. */
  readonly declaredBytes: number | null;
  /** A body among the writes is refused when there is no room, one among the imports waits for it. */
  readonly room: RoomName;
  /** Whose part of the room the body counts to, e.g. the organization. */
  readonly share?: string;
  /** Most bytes that the share may have in the room, unless a single body is larger; null is as much as there is. */
  readonly shareLimit?: number | null;
}

/** Room for bodies, in bytes. */
export type RoomSizes = Readonly<Record<RoomName, number>>;

/** What it takes to open a body that is kept sealed: to be known to the API and Postgres, not to where the body is kept. */
export interface BodySeal {
  /** Of this body alone. */
  readonly key: Buffer;
  readonly pieces: number;
  readonly bytes: number;
}

/** Keeps request bodies between the process that received them and the worker that stores them. */
export interface PayloadStore {
  /**
   * Takes in a body as it arrives. Rejects with PayloadTooLargeError above `maxBytes`, with UnavailableError when the store
   * has no room for it, or needs its room for an older one, and with the body's own error when that breaks off; nothing is
   * kept then. The seal is null where bodies do not leave the process.
   */
  put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: PayloadOptions,
  ): Promise<{ bytes: number; seal: BodySeal | null }>;
  /** The body, as often as asked. Throws PayloadMissingError, and PayloadTamperedError when it is not what was sealed. */
  open(key: string, seal: BodySeal | null): AsyncIterable<Buffer>;
  delete(key: string): Promise<void>;
  bytesHeld(): number;
  /** Resolves when the store answers; throws UnavailableError when it has not within `limitMs`. */
  check(limitMs: number): Promise<void>;
  /** Ends what goes on in the background. */
  close(): Promise<void>;
}

/** The body is not (or no longer) there: it was done with, it expired, or Redis lost it. Only the client has it now. */
export class PayloadMissingError extends UnavailableError {
  override readonly name = 'PayloadMissingError';
  override readonly code = 'handover-missing';
  constructor() {
    super('The body of this request is no longer available; please retry', { retryAfterSeconds: 1 });
  }
}

/** What lies in the place of the body is not what was put there. No byte of a piece is given out before the piece is known to be whole. */
export class PayloadTamperedError extends UnavailableError {
  override readonly name = 'PayloadTamperedError';
  override readonly code = 'handover-tampered';
  constructor() {
    super('The body of this request was changed on its way to a worker, and nothing was done; please retry', {
      retryAfterSeconds: 1,
    });
  }
}

/** There is no room for the body at present. */
export class NoRoomError extends UnavailableError {
  override readonly name = 'NoRoomError';
  override readonly code = 'no-room';
  /** Whether it is the limit of the body's share that was reached. */
  readonly isShareLimit: boolean;
  constructor(isShareLimit = false) {
    super('The server has no room for more request bodies; please retry', { retryAfterSeconds: 1 });
    this.isShareLimit = isShareLimit;
  }
}

/** The body had to make room for an older one, or its process stood still for so long that it was taken for dead. */
export class RoomLostError extends UnavailableError {
  override readonly name = 'RoomLostError';
  override readonly code = 'room-lost';
  constructor() {
    super('The server needed the room of this request body before it was complete; please retry', {
      retryAfterSeconds: 1,
    });
  }
}
