import type { EventOwner, EventReader } from '../../shared/events/event-reader.ts';
import type { EventSelection } from '../../shared/events/event-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { HistoryRepository } from '../../shared/updates/history-repository.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import { updateNotFound } from '../updates/update-errors.ts';
import { eventPageJson } from './event-page.ts';

/** Reads the engine events of updates. */
export class EventService {
  readonly #events: EventReader;
  readonly #history: HistoryRepository;

  constructor({ eventReader, history }: { eventReader: EventReader; history: HistoryRepository }) {
    this.#events = eventReader;
    this.#history = history;
  }

  /**
   * The update with this id or version, and whether more events may arrive. Call before reading the page: events added in between
   * would be missing from it. Throws NotFoundError.
   */
  async find(update: string | number, ref: StackRef): Promise<EventOwner & { readonly isActive: boolean }> {
    const found = await (typeof update === 'number'
      ? this.#history.findVersionStatus(update, ref)
      : this.#history.findStatus(update, ref));
    if (!found) throw updateNotFound(String(update));
    return { id: found.id, mayHaveRows: found.mayHaveEventRows, isActive: isActive(found.status) };
  }

  /** The first page of the selection, as JSON. Its token is `atEnd` if it has no events. */
  pageJson(update: EventOwner, selection: EventSelection, atEnd: string | null): AsyncGenerator<Buffer> {
    return eventPageJson(this.#events, update, selection, atEnd);
  }
}
