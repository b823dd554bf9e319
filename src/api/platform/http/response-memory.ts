import { PayloadTooLargeError, UnavailableError } from '../../../shared/platform/errors/errors.ts';
import { ByteBudget } from '../../../shared/platform/payloads/byte-budget.ts';

const defaultCapacityBytes = 128 * 1024 * 1024;
/** Maximum wait for memory, in ms. */
const maxWaitMs = 30_000;

/**
 * Takes memory for a large answer about a stack of an organization before it is made; it is held until the response is sent. Throws
 * UnavailableError, PayloadTooLargeError.
 */
export type ReserveMemory = (bytes: number, organization: string) => Promise<void>;

/** Memory for large answers of all requests of a process: an answer is in memory as a whole, in several forms, until its response is sent. */
export class ResponseMemory {
  readonly #budget: ByteBudget;

  constructor(capacityBytes = defaultCapacityBytes) {
    this.#budget = new ByteBudget(capacityBytes);
  }

  /** What one request holds, until it ends. */
  open(): RequestMemory {
    return new RequestMemory(this.#budget);
  }
}

/** What the answers of one request hold. */
export class RequestMemory {
  readonly #budget: ByteBudget;
  readonly #held: { readonly bytes: number; readonly fairnessKey: string }[] = [];
  #isTaking = false;
  #hasEnded = false;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /**
   * The first call of a request may wait. Others may not, since the request keeps what it has until all are answered: if there is no room
   * left, they are refused. `fairnessKey`: the organization.
   */
  async hold(bytes: number, fairnessKey: string): Promise<void> {
    if (this.#isTaking) {
      if (!this.#budget.tryGrow(0, bytes, fairnessKey))
        throw new PayloadTooLargeError('There is no memory for this answer beside the others: send the call alone');
    } else {
      this.#isTaking = true;
      await this.#budget.acquire(bytes, maxWaitMs, fairnessKey);
    }
    this.#held.push({ bytes, fairnessKey });
    if (!this.#hasEnded) return;
    this.#release();
    throw new UnavailableError('The client is gone');
  }

  /** The response is sent, or nobody reads it. */
  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  #release(): void {
    for (const { bytes, fairnessKey } of this.#held.splice(0)) this.#budget.release(bytes, fairnessKey);
  }
}
