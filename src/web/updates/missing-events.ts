/** Time after which a gap of a running update is ignored until the end, in ms: the client may have dropped the batch. */
const patienceMs = 5 * 60_000;

interface Gap {
  readonly first: number;
  readonly last: number;
  readonly since: number;
}

/**
 * Between the events that were read: the CLI numbers them without gaps, from 0. It has several batches in flight, and repeats failed ones,
 * so an event may arrive long after later ones.
 */
export class MissingEvents {
  /** The gaps in order. */
  #gaps: Gap[] = [];
  #next = 0;

  /** An event may be read repeatedly. */
  note(sequence: number, now = performance.now()): void {
    if (sequence >= this.#next) {
      if (sequence > this.#next) this.#gaps.push({ first: this.#next, last: sequence - 1, since: now });
      this.#next = sequence + 1;
      return;
    }
    // Late events are mostly near the end.
    const at = this.#gaps.findLastIndex(({ first }) => first <= sequence);
    const gap = this.#gaps[at];
    if (gap === undefined || gap.last < sequence) return;
    const rest = [
      { ...gap, last: sequence - 1 },
      { ...gap, first: sequence + 1 },
    ];
    this.#gaps.splice(at, 1, ...rest.filter(({ first, last }) => first <= last));
  }

  /** The first missing event; null if there is none. */
  get first(): number | null {
    return this.#gaps[0]?.first ?? null;
  }

  /** Returns null if there is none. */
  firstAfter(sequence: number): number | null {
    const gap = this.#gaps.find(({ last }) => last > sequence);
    return gap ? Math.max(gap.first, sequence + 1) : null;
  }

  /** The first missing event that may still arrive while the update runs; null if there is none. */
  firstAwaited(now = performance.now()): number | null {
    return this.#gaps.find(({ since }) => now - since < patienceMs)?.first ?? null;
  }
}
