/** How much one search does before it says that it is cut short. */
export interface SearchBounds {
  /** Looks no further after this time, in ms. */
  readonly ms: number;
  /** Looks no further after so many resources. */
  readonly resources: number;
}

export const defaultBounds: SearchBounds = { ms: 1_500, resources: 5_000_000 };

/** What a search may still do. */
export class SearchBudget {
  readonly #until: number;
  readonly #gone: AbortSignal | null;
  #resources: number;

  constructor({ ms, resources }: SearchBounds, gone: AbortSignal | null) {
    this.#until = performance.now() + ms;
    this.#resources = resources;
    this.#gone = gone;
  }

  /** Returns whether there is something left, and somebody who waits for it. */
  spend(resources: number): boolean {
    if (this.#gone?.aborted) return false;
    this.#resources -= resources;
    return this.#resources > 0 && performance.now() < this.#until;
  }
}
