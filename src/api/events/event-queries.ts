import { type EventOwner, EventReader } from '../../shared/events/event-reader.ts';
import { createEventRepository, type EventSelection } from '../../shared/events/event-repository.ts';
import { createEventSegmentRepository } from '../../shared/events/event-segment-repository.ts';
import { EventSegments } from '../../shared/events/event-segments.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { EventsDeletedError } from '../../shared/state/retention/deleted-errors.ts';
import type { HistoryRepository } from '../../shared/updates/history-repository.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { updateNotFound } from '../updates/update-not-found.ts';
import { EventGaps } from './event-gaps.ts';
import { eventPageJson } from './event-page.ts';
import { EventWaits } from './event-waits.ts';
import { type PageOfEvents, readEventPage } from './parsed-event-page.ts';

export class EventQueries {
  readonly #context: ApiContext;
  readonly #history: HistoryRepository;
  readonly #gaps = new EventGaps();
  readonly #waits: EventWaits;

  constructor(context: ApiContext) {
    this.#context = context;
    this.#history = context.history;
    this.#waits = new EventWaits(context.notifications.channel);
  }

  /**
   * Call before reading the page, which would otherwise lack events added in between. Throws NotFoundError, and EventsDeletedError if
   * retention has deleted the events.
   */
  async find(update: string | number, ref: StackRef): Promise<EventOwner & { readonly isActive: boolean }> {
    const found = await (typeof update === 'number'
      ? this.#history.findVersionStatus(update, ref)
      : this.#findById(update, ref));
    if (!found) throw updateNotFound(String(update));
    if (found.hasDeletedEvents) throw new EventsDeletedError();
    return { id: found.id, mayHaveRows: found.mayHaveEventRows, isActive: isActive(found.status) };
  }

  /** Links to imported updates may contain the ids that the updates had elsewhere. */
  async #findById(id: string, ref: StackRef) {
    const found = await this.#history.findStatus(id, ref);
    const imported = found ? null : await this.#history.findImported(id, ref);
    return imported === null ? found : this.#history.findStatus(imported, ref);
  }

  /**
   * If the page has no events, its token is `atEnd`; null ends the client's loop. For clients that `follow` a running update, the page
   * waits for late batches and, if it is empty, for events, until `gone` is aborted.
   */
  async *pageJson(
    update: EventOwner & { readonly isActive: boolean },
    selection: EventSelection,
    { atEnd, follow, gone }: { readonly atEnd: string | null; readonly follow: boolean; readonly gone: AbortSignal },
  ): AsyncGenerator<Buffer> {
    const follows = follow && update.isActive && !selection.newestFirst;
    // Begun before the first page is read, which lacks events that arrive meanwhile.
    const wait = follows ? this.#waits.next(update.id, this.#context.config.eventHoldMs, gone) : null;
    try {
      if (yield* this.#page(update, selection, follows)) return;
      await wait?.changed;
    } finally {
      wait?.end();
    }
    if (follows && !gone.aborted && (yield* this.#page(update, selection, follows))) return;
    yield Buffer.from(`{"events":[],"continuationToken":${JSON.stringify(atEnd)}}`);
  }

  /** Makes waiting calls respond, because this process is about to stop. */
  drain(): void {
    this.#waits.drain();
  }

  /** The events are parsed. */
  async listPage(update: EventOwner, selection: EventSelection, limit: number): Promise<PageOfEvents> {
    const { eventReader, replica } = this.#context;
    const db = await replica?.begin();
    return readEventPage(db ? this.#readerOf(db) : eventReader, update, selection, limit);
  }

  async *#page(update: EventOwner, selection: EventSelection, follows: boolean): AsyncGenerator<Buffer, boolean> {
    const { eventReader, replica } = this.#context;
    const db = await replica?.begin();
    const rows = createEventRepository(db ?? this.#context.db);
    const isWhole = selection.types === null && selection.urn === null;
    const settled =
      follows && isWhole ? async () => this.#gaps.note(update.id, await rows.findHighest(update.id)) : null;
    return yield* eventPageJson(db ? this.#readerOf(db) : eventReader, update, selection, settled);
  }

  /** Damage is reported to the primary. */
  #readerOf(db: Queryable): EventReader {
    const { copies, documents, logger, readOnly } = this.#context;
    const { list, find } = createEventSegmentRepository(db);
    const rows = { ...createEventSegmentRepository(this.#context.db), list, find };
    const segments = new EventSegments({ rows, documents, copies, readOnly, logger });
    return new EventReader({ rows: createEventRepository(db), segments });
  }
}
