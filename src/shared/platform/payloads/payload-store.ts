import { UnavailableError } from '../errors/errors.ts';
import type { BudgetName } from './in-flight-rules.ts';

export interface PayloadOptions {
  readonly maxBytes: number;
  /** Content-Length, if the client sent it. */
  readonly declaredBytes: number | null;
  /** Without capacity, `writes` are refused, and `imports` wait. */
  readonly budget: BudgetName;
  /** `fairnessKey` and `keyLimit` are those of ArrivingBody. */
  readonly fairnessKey?: string;
  readonly keyLimit?: number | null;
  /** Fires when the client has left. The body then stops waiting for capacity, and `put` rejects with the reason of the signal. */
  readonly gone?: AbortSignal;
}

export type BudgetSizes = Readonly<Record<BudgetName, number>>;

/** Only the API and Postgres have it, not the store of the body. */
export interface BodyEncryption {
  /** The key of this body alone. */
  readonly key: Buffer;
  readonly chunks: number;
  readonly bytes: number;
}

/** Keeps bodies between the process that received them and the worker that stores them. */
export interface PayloadStore {
  /**
   * Takes a body as it arrives. Rejects with PayloadTooLargeError above `maxBytes`, with UnavailableError if the store has no capacity for
   * the body or needs it for an older one, and with the body's own error. Nothing is stored then. `encryption` is null if bodies do not
   * leave the process.
   */
  put(
    key: string,
    body: AsyncIterable<Buffer>,
    options: PayloadOptions,
  ): Promise<{ bytes: number; encryption: BodyEncryption | null }>;
  /** May be called repeatedly. Throws PayloadMissingError, and PayloadTamperedError if the body was changed. */
  open(key: string, encryption: BodyEncryption | null): AsyncIterable<Buffer>;
  delete(key: string): Promise<void>;
  bytesHeld(): number;
  /** Includes all processes. */
  heldByKey(budget: BudgetName): Promise<ReadonlyMap<string, number>>;
  /** Throws UnavailableError. */
  check(limitMs: number): Promise<void>;
  /** Stops background work. */
  close(): Promise<void>;
}

/** The body was deleted, it expired, or Redis lost it. Only the client still has it. */
export class PayloadMissingError extends UnavailableError {
  override readonly name = 'PayloadMissingError';
  override readonly code = 'payload-missing';
  constructor() {
    super('The body of this request is no longer available; please retry', { retryAfterSeconds: 1 });
  }
}

/** A chunk is authenticated before its first byte is returned. */
export class PayloadTamperedError extends UnavailableError {
  override readonly name = 'PayloadTamperedError';
  override readonly code = 'payload-tampered';
  constructor() {
    super('The body of this request was changed on its way to a worker, and nothing was done; please retry', {
      retryAfterSeconds: 1,
    });
  }
}

export class BudgetExhaustedError extends UnavailableError {
  override readonly name = 'BudgetExhaustedError';
  override readonly code = 'budget-full';
  /** The limit of the body's key was the reason. */
  readonly isKeyLimit: boolean;
  constructor(isKeyLimit = false) {
    super('The server has no capacity for more request bodies; please retry', { retryAfterSeconds: 1 });
    this.isKeyLimit = isKeyLimit;
  }
}

/** The body was evicted for an older one, or its process paused so long that it was considered dead. */
export class ReservationLostError extends UnavailableError {
  override readonly name = 'ReservationLostError';
  override readonly code = 'budget-lost';
  constructor() {
    super('The server needed the memory of this request body before it was complete; please retry', {
      retryAfterSeconds: 1,
    });
  }
}
