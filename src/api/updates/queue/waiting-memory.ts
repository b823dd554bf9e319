import { UnavailableError } from '../../../shared/platform/errors/errors.ts';

/** Maximum memory of all calls that wait in this process, in bytes. */
const maxWaitingBytes = 128 * 1024 * 1024;
/** Memory of a waiting call without its texts, in bytes. */
const callBytes = 16 * 1024;

/** New calls of an organization get at most half of the memory that other organizations leave. */
export class WaitingMemory {
  readonly #maxBytes: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxBytes = maxWaitingBytes) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Counts a call whose texts have `chars` characters, until it is disposed of. A call that has waited before gets all the memory that
   * others leave: it must not lose its position because another organization begins to wait. Throws UnavailableError.
   */
  hold(organization: string, chars: number, { isNew }: { readonly isNew: boolean }): Disposable {
    const bytes = callBytes + 2 * chars;
    const own = this.#held.get(organization) ?? 0;
    const left = this.#maxBytes - (this.#total - own);
    if (own + bytes > (isNew ? left / 2 : left)) {
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
