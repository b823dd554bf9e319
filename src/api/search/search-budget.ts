/** A search that exceeds them is cut short. */
export interface SearchBounds {
  readonly ms: number;
  /** Scanned resources. */
  readonly resources: number;
  /** For counts, which cost the same in every larger fleet. */
  readonly counted: number;
}

export const defaultBounds: SearchBounds = { ms: 1_500, resources: 5_000_000, counted: 100_000 };

/** In resources. */
const stackCost = 10;

export class SearchBudget {
  readonly #until: number;
  readonly #gone: AbortSignal | null;
  #resources: number;

  constructor({ ms, resources }: Pick<SearchBounds, 'ms' | 'resources'>, gone: AbortSignal | null) {
    this.#until = performance.now() + ms;
    this.#resources = resources;
    this.#gone = gone;
  }

  /** Also false if no client waits for the result. */
  spend({ resources, stacks }: { readonly resources: number; readonly stacks: readonly unknown[] }): boolean {
    if (this.#gone?.aborted) return false;
    this.#resources -= resources + stackCost * stacks.length;
    return this.#resources > 0 && performance.now() < this.#until;
  }
}
