/** A page ends before a gap for this time. The CLI has three batches in flight, and repeats failed ones. */
const patienceMs = 5_000;
/** Beyond this number, the least recently read updates start again. */
const maxUpdates = 10_000;

interface Watch {
  /** Events up to this sequence have been there for the whole patience. */
  settled: number;
  /** The highest sequence at `since`, by `performance.now()`. */
  highest: number;
  since: number;
}

/** A late batch may still fill a gap between the events of a running update. Clients may skip sequences, so no gap is awaited forever. */
export class EventGaps {
  readonly #watches = new Map<string, Watch>();

  /** Returns the sequence up to which gaps are no longer awaited; -1 if there is none yet. */
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
