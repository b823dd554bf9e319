/** Limits of one search; beyond them it is cut short. */
export interface SearchBounds {
  /** Maximum time, in ms. */
  readonly ms: number;
  /** Maximum number of scanned resources. */
  readonly resources: number;
}

export const defaultBounds: SearchBounds = { ms: 1_500, resources: 5_000_000 };

/** The remaining budget of a search. */
export class SearchBudget {
  readonly #until: number;
  readonly #gone: AbortSignal | null;
  #resources: number;

  constructor({ ms, resources }: SearchBounds, gone: AbortSignal | null) {
    this.#until = performance.now() + ms;
    this.#resources = resources;
    this.#gone = gone;
  }

  /** Whether budget is left, and a client still waits for the result. */
  spend(resources: number): boolean {
    if (this.#gone?.aborted) return false;
    this.#resources -= resources;
    return this.#resources > 0 && performance.now() < this.#until;
  }
}
