import { readEvent } from './engine-event.ts';
import { MissingEvents } from './missing-events.ts';
import { UpdateProgress } from './update-progress.ts';

/** The oldest first. `next` is the beginning of the following page, or null at the current end. */
export interface EventPage {
  readonly items: readonly unknown[];
  readonly next: string | null;
}

export interface EventSource {
  readonly fetchPage: (cursor: string | null, signal: AbortSignal) => Promise<EventPage>;
  /** Whether more events may arrive. */
  readonly isRunning: () => boolean;
  /** Resolves when it is time to read again. */
  readonly wait: (signal: AbortSignal) => Promise<void>;
}

/** The feed continues while the update runs. */
export class EventFeed {
  readonly progress = new UpdateProgress();
  /** All events that existed at the start have been read once. */
  isCaughtUp = false;
  /** The update has ended, and all its events have been read. */
  isOver = false;
  /** Changes whenever the other properties do: the view is then rebuilt. */
  revision = 0;
  readonly #source: EventSource;
  readonly #missing = new MissingEvents();
  /** The beginnings of pages, by the sequence of the event before each. */
  readonly #starts = new Map<number, string>();

  constructor(source: EventSource) {
    this.#source = source;
  }

  get hasGaps(): boolean {
    return this.#missing.first !== null;
  }

  /** Reads until the update has ended and all its events are read. Rejects if a page cannot be read. */
  async run(onChange: () => void, signal: AbortSignal): Promise<void> {
    let isFirst = true;
    // The beginnings of the newest two pages. The CLI sends up to three batches of 50 events at a time, which arrive in any order. Late
    // events are mostly on these pages, so the pages are read again.
    let newest: (string | null)[] = [null];
    while (!signal.aborted) {
      const wasRunning = this.#source.isRunning();
      // A repeated batch is on an older page. While more events arrive, one such page per round is enough.
      const gap = wasRunning ? this.#missing.firstAwaited() : null;
      if (gap !== null) await this.#read(this.#startOf(gap), onChange, signal);
      if (!wasRunning) await this.#readGaps(newest, onChange, signal);
      let cursor = newest[0] ?? null;
      while (!signal.aborted) {
        const { next } = await this.#read(cursor, onChange, signal);
        if (next === null) break;
        cursor = next;
        if (cursor !== newest.at(-1)) newest = [newest.at(-1) ?? null, cursor];
      }
      if (signal.aborted) return;
      // The last events were stored before the update ended, so they are read after its end is known.
      if (isFirst || !wasRunning)
        this.#change(onChange, () => Object.assign(this, { isCaughtUp: true, isOver: !wasRunning }));
      if (!wasRunning) return;
      isFirst = false;
      if (this.#source.isRunning()) await this.#source.wait(signal);
    }
  }

  /** Reads each older page that lacks events once. */
  async #readGaps(newest: readonly (string | null)[], onChange: () => void, signal: AbortSignal): Promise<void> {
    for (let read = -1; !signal.aborted; ) {
      const gap = this.#missing.firstAfter(read);
      if (gap === null) return;
      const start = this.#startOf(gap);
      if (newest.includes(start)) return;
      const { last } = await this.#read(start, onChange, signal);
      if (last <= read) return;
      read = last;
    }
  }

  /** Returns the beginning of the following page (null at the end, or if nobody waits any more) and the last event. */
  async #read(
    cursor: string | null,
    onChange: () => void,
    signal: AbortSignal,
  ): Promise<{ next: string | null; last: number }> {
    const page = await this.#source.fetchPage(cursor, signal);
    let added = 0;
    let last = -1;
    if (signal.aborted) return { next: null, last };
    for (const item of page.items) {
      const sequence = (item as { readonly sequence?: unknown } | null)?.sequence;
      if (typeof sequence === 'number') {
        this.#missing.note(sequence);
        last = sequence;
      }
      const event = readEvent(item);
      if (event !== null && this.progress.add(event)) added += 1;
    }
    if (page.next !== null) this.#starts.set(last, page.next);
    if (added > 0) this.#change(onChange, () => {});
    return { next: page.next, last };
  }

  #startOf(sequence: number): string | null {
    let start: number | null = null;
    for (const after of this.#starts.keys()) if (after < sequence && after > (start ?? -1)) start = after;
    return start === null ? null : (this.#starts.get(start) ?? null);
  }

  #change(onChange: () => void, change: () => void): void {
    change();
    this.revision += 1;
    onChange();
  }
}
