/** How long a page ends before a gap at least, in ms. The CLI has three batches in flight, and repeats those that fail. */
const patienceMs = 5_000;
/** Updates that are followed at once; of more, those that were read longest ago start again. */
const maxUpdates = 10_000;

interface Watch {
  /** Events up to this sequence were there for the whole patience. */
  settled: number;
  /** The highest sequence at `since`, by `performance.now()`. */
  highest: number;
  since: number;
}

/** Which gaps between the events of running updates a late batch may still fill. Clients may skip sequences: no gap is awaited forever. */
export class EventGaps {
  readonly #watches = new Map<string, Watch>();

  /**
   * Records the highest sequence that the update has now. Returns the sequence up to which nobody waits for gaps any more; -1 if there
   * is none yet.
   */
  note(updateId: string, highest: number, now = performance.now()): number {
    const watch = this.#watches.get(updateId) ?? { settled: -1, highest, since: now };
    if (now - watch.since >= patienceMs) Object.assign(watch, { settled: watch.highest, highest, since: now });
    // Moves to the end, so that the first is the one that was read longest ago.
    this.#watches.delete(updateId);
    this.#watches.set(updateId, watch);
    if (this.#watches.size > maxUpdates) this.#watches.delete(this.#watches.keys().next().value as string);
    return watch.settled;
  }
}
