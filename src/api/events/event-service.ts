import type { EventRepository } from '../../shared/events/event-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import type { HistoryRepository } from '../../shared/updates/history-repository.ts';
import { isActive } from '../../shared/updates/update-state.ts';
import { updateNotFound } from '../updates/update-service.ts';
import { eventPageJson } from './event-page.ts';

/** Reads the engine events of updates. */
export class EventService {
  readonly #events: EventRepository;
  readonly #history: HistoryRepository;

  constructor({ events, history }: { events: EventRepository; history: HistoryRepository }) {
    this.#events = events;
    this.#history = history;
  }

  /** Whether more events may come. To be asked before the page: what comes between would be missing from it. Throws NotFoundError. */
  async isActive(updateId: string, ref: StackRef): Promise<boolean> {
    const update = await this.#history.findStatus(updateId, ref);
    if (!update) throw updateNotFound(updateId);
    return isActive(update.status);
  }

  /** The page after the sequence `after`, as JSON. Its token is `atEnd` when it has no events. */
  pageJson(
    updateId: string,
    selection: { readonly after: number; readonly urn: string | null },
    atEnd: string | null,
  ): AsyncGenerator<string> {
    return eventPageJson(this.#events, updateId, selection, atEnd);
  }
}
