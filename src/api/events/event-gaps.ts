/** How long a page ends before a gap, in ms. The CLI has three batches in flight, and repeats failed ones. */
const patienceMs = 5_000;
/** Maximum number of updates to follow; beyond it, the least recently read updates start again. */
const maxUpdates = 10_000;

interface Watch {
  /** Events up to this sequence have been there for the whole patience. */
  settled: number;
  /** The highest sequence at `since`, by `performance.now()`. */
  highest: number;
  since: number;
}

/**
 * Gaps between the events of running updates that a late batch may still fill. Clients may skip sequences, so no gap is awaited forever.
 */
export class EventGaps {
  readonly #watches = new Map<string, Watch>();

  /**
   * Records the highest sequence that the update has now. Returns the sequence up to which gaps are no longer awaited; -1 if there is none
   * yet.
   */
  note(updateId: string, highest: number, now = performance.now()): number {
    const watch = this.#watches.get(updateId) ?? { settled: -1, highest, since: now };
    if (now - watch.since >= patienceMs) Object.assign(watch, { settled: watch.highest, highest, since: now });
    // Moved to the end, so that the first entry is the least recently read one.
    this.#watches.delete(updateId);
    this.#watches.set(updateId, watch);
    if (this.#watches.size > maxUpdates) this.#watches.delete(this.#watches.keys().next().value as string);
    return watch.settled;
  }
}
