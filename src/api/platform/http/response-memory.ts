import { PayloadTooLargeError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { ByteBudget } from '../../../shared/platform/payloads/byte-budget.ts';

const defaultCapacityBytes = 128 * 1024 * 1024;
const maxWaitMs = 30_000;

/** Call before a large result is computed. Holds memory until the response is sent. Throws UnavailableError, PayloadTooLargeError. */
export type ReserveMemory = (bytes: number, organization: string) => Promise<void>;

/** Memory for all requests of a process: a whole result is in memory, in several forms, until its response is sent. */
export class ResponseMemory {
  readonly #budget: ByteBudget;

  constructor(capacityBytes = defaultCapacityBytes) {
    this.#budget = new ByteBudget(capacityBytes);
  }

  open(): RequestMemory {
    return new RequestMemory(this.#budget);
  }
}

export class RequestMemory {
  readonly #budget: ByteBudget;
  readonly #held: { readonly bytes: number; readonly fairnessKey: string }[] = [];
  #isTaking = false;
  #hasEnded = false;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /**
   * Only the first reservation of a request may wait. Later ones fail if no memory is left, because the request keeps its memory until it
   * is answered. `fairnessKey`: the organization.
   */
  async hold(bytes: number, fairnessKey: string): Promise<void> {
    if (this.#isTaking) {
      if (!this.#budget.tryGrow(0, bytes, fairnessKey))
        throw new PayloadTooLargeError(
          'There is not enough memory for this response in the same batch: send the call separately',
        );
    } else {
      this.#isTaking = true;
      await this.#budget.acquire(bytes, maxWaitMs, fairnessKey);
    }
    this.#held.push({ bytes, fairnessKey });
    if (!this.#hasEnded) return;
    this.#release();
    throw new UnavailableError('The client has disconnected');
  }

  /** Call when the response is sent, or its client is gone. */
  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  #release(): void {
    for (const { bytes, fairnessKey } of this.#held.splice(0)) this.#budget.release(bytes, fairnessKey);
  }
}
