/** A search that exceeds them is cut short. */
export interface SearchBounds {
  readonly ms: number;
  /** Scanned resources. */
  readonly resources: number;
  /** The limit for counts, which cost the same in every larger fleet. */
  readonly counted: number;
}

export const defaultBounds: SearchBounds = { ms: 1_500, resources: 5_000_000, counted: 100_000 };

/** A stack costs as much as this many resources. */
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

  /** Whether budget is left, and a client still waits. */
  spend({ resources, stacks }: { readonly resources: number; readonly stacks: readonly unknown[] }): boolean {
    if (this.#gone?.aborted) return false;
    this.#resources -= resources + stackCost * stacks.length;
    return this.#resources > 0 && performance.now() < this.#until;
  }
}
