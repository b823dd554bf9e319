import type { EventOwner, EventReader } from '../../shared/events/event-reader.ts';
import type { EventSelection } from '../../shared/events/event-repository.ts';
import { textOf } from '../../shared/events/event-text.ts';
import { cutDeep } from '../platform/http/cut-deep.ts';

/** A single event may be larger. */
const pageBytes = 1024 * 1024;

/** An event as the CLI sent it, without deeply nested values. */
export type ParsedEvent = { readonly sequence: number; readonly type: string } & Readonly<Record<string, unknown>>;

export interface PageOfEvents {
  readonly items: ParsedEvent[];
  readonly isCut: boolean;
}

/** As many events as fit on a page, at most `limit`. */
export async function readEventPage(
  reader: EventReader,
  update: EventOwner,
  selection: EventSelection,
  limit: number,
): Promise<PageOfEvents> {
  const items: ParsedEvent[] = [];
  let bytes = 0;
  for await (const batch of reader.read(update, selection, { events: limit, bytes: pageBytes })) {
    for (const event of batch) {
      if (items.length === limit || (items.length > 0 && bytes + event.bytes > pageBytes))
        return { items, isCut: true };
      const text = Buffer.from(await textOf(event));
      const parsed = JSON.parse(cutDeep(text).toString('utf8')) as Record<string, unknown>;
      items.push({ type: event.type, ...parsed, sequence: event.sequence });
      bytes += event.bytes;
    }
  }
  return { items, isCut: false };
}
