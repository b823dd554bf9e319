import { UnavailableError } from '../../../shared/platform/errors/errors.ts';

/** Memory of all calls that wait in this process, in bytes. */
const maxWaitingBytes = 128 * 1024 * 1024;
/** A waiting call without its texts, in bytes. */
const callBytes = 16 * 1024;

/** Limits the memory of waiting calls. An organization gets at most half of what the others leave. */
export class WaitingMemory {
  readonly #maxBytes: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxBytes = maxWaitingBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Counts a call whose texts have so many characters, until it is disposed of. Throws UnavailableError. */
  hold(organization: string, chars: number): Disposable {
    const bytes = callBytes + 2 * chars;
    const own = this.#held.get(organization) ?? 0;
    if (own + bytes > (this.#maxBytes - (this.#total - own)) / 2) {
      const message = `Too many runs of organization ${organization} wait for their stacks; please start the command again later`;
      throw new UnavailableError(message, { retryAfterSeconds: 60 });
    }
    this.#add(organization, bytes);
    return { [Symbol.dispose]: () => this.#add(organization, -bytes) };
  }

  #add(organization: string, bytes: number): void {
    const own = (this.#held.get(organization) ?? 0) + bytes;
    if (own === 0) this.#held.delete(organization);
    else this.#held.set(organization, own);
    this.#total += bytes;
  }
}
