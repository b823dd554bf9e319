import type { EventOwner, EventReader } from '../../shared/events/event-reader.ts';
import type { EventSelection } from '../../shared/events/event-repository.ts';
import { cutDeep } from '../platform/http/cut-deep.ts';

/** Maximum size of a page, and of one event on it, in bytes. */
const pageBytes = 1024 * 1024;
const maxEventBytes = 256 * 1024;

/** An event as sent by the CLI, without deeply nested values, or `{sequence, type, omittedBytes}`. */
export type ParsedEvent = { readonly sequence: number; readonly type: string } & Readonly<Record<string, unknown>>;

export interface PageOfEvents {
  readonly items: ParsedEvent[];
  /** Whether there may be more. */
  readonly isCut: boolean;
}

/** Up to `limit` events, as many as fit on a page. */
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
      const { sequence, text, type } = event;
      if (typeof text === 'function' || event.bytes > maxEventBytes) {
        items.push({ sequence, type, omittedBytes: event.bytes });
        continue;
      }
      const parsed = JSON.parse(cutDeep(Buffer.from(text)).toString('utf8')) as Record<string, unknown>;
      items.push({ type, ...parsed, sequence });
      bytes += event.bytes;
    }
  }
  return { items, isCut: false };
}
