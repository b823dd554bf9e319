import { readEvent } from './engine-event.ts';
import { UpdateProgress } from './update-progress.ts';

/** A page of events, the oldest first. `next`: where the following page begins, or null at the current end. */
export interface EventPage {
  readonly items: readonly unknown[];
  readonly next: string | null;
}

export interface EventSource {
  readonly fetchPage: (cursor: string | null, signal: AbortSignal) => Promise<EventPage>;
  /** Whether more events may come. */
  readonly isRunning: () => boolean;
  /** Resolves when it is time to look again. */
  readonly wait: (signal: AbortSignal) => Promise<void>;
}

/** Reads all events of an update into a tree, and goes on while the update runs. */
export class EventFeed {
  readonly progress = new UpdateProgress();
  /** Whether all events that existed at the start have been read once. */
  isCaughtUp = false;
  /** Changes with everything above: the view is rebuilt when it does. */
  revision = 0;
  readonly #source: EventSource;

  constructor(source: EventSource) {
    this.#source = source;
  }

  /** Reads until the update has ended and all its events are here. Rejects if a page cannot be read. */
  async run(onChange: () => void, signal: AbortSignal): Promise<void> {
    // Where the newest two pages begin. The CLI sends up to three batches of 50 events at a time, which arrive in any
    // order: late events are on these pages, so they are read again.
    let newest: (string | null)[] = [null];
    while (!signal.aborted) {
      const wasRunning = this.#source.isRunning();
      for (let cursor = newest[0] ?? null; ; ) {
        const page = await this.#source.fetchPage(cursor, signal);
        if (signal.aborted) return;
        this.#add(page, onChange);
        if (signal.aborted) return;
        if (page.next === null) break;
        cursor = page.next;
        if (cursor !== newest.at(-1)) newest = [newest.at(-1) ?? null, cursor];
      }
      if (!this.isCaughtUp) this.#change(onChange, () => (this.isCaughtUp = true));
      // The last events were stored before the update ended, so they are read after its end was seen.
      if (!wasRunning) return;
      if (this.#source.isRunning()) await this.#source.wait(signal);
    }
  }

  #add(page: EventPage, onChange: () => void): void {
    let added = 0;
    for (const item of page.items) {
      const event = readEvent(item);
      if (event !== null && this.progress.add(event)) added += 1;
    }
    if (added > 0) this.#change(onChange, () => {});
  }

  #change(onChange: () => void, change: () => void): void {
    change();
    this.revision += 1;
    onChange();
  }
}
