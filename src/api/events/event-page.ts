import type { EventOwner, EventReader } from '../../shared/events/event-reader.ts';
import type { EventSelection } from '../../shared/events/event-repository.ts';
import type { EventText, StoredEvent } from '../../shared/events/event-segments.ts';
import { JsonBytes } from '../platform/http/json-bytes.ts';

/** The client continues with its token. A single event may be larger. */
const page = { events: 500, bytes: 1024 * 1024 };
/** Events are joined up to this size before they are sent. */
const chunkBytes = 128 * 1024;

/**
 * Read in chunks: the texts are copied, not decoded. The token is the sequence of the last event. With `settled`, the page ends before a
 * gap above the sequence that it returns: a late batch may fill the gap, and clients would not see it. Returns false, and yields nothing,
 * if the page would be empty.
 */
export async function* eventPageJson(
  events: EventReader,
  update: EventOwner,
  selection: EventSelection,
  settled: (() => Promise<number>) | null,
): AsyncGenerator<Buffer, boolean> {
  const json = new JsonBytes();
  let last: number | null = null;
  let rows = 0;
  let bytes = 0;
  let settledTo: number | null = null;
  json.add('{"events":[');
  read: for await (const batch of events.read(update, selection, page)) {
    for (const event of batch) {
      if (settled && event.sequence > (last ?? selection.beyond) + 1) {
        settledTo ??= await settled();
        if (event.sequence > settledTo) break read;
      }
      // An event that does not fit starts the next page.
      if (rows > 0 && bytes + event.bytes > page.bytes) break read;
      if (rows > 0) json.add(',');
      const { text } = event;
      if (typeof text !== 'function') addText(json, event, text, true);
      else {
        let isFirst = true;
        for await (const part of text()) {
          addText(json, event, part, isFirst);
          isFirst = false;
          if (json.length >= chunkBytes) yield json.take();
        }
      }
      last = event.sequence;
      rows += 1;
      bytes += event.bytes;
      if (rows === page.events || bytes >= page.bytes) break read;
      if (json.length >= chunkBytes) yield json.take();
    }
  }
  if (last === null) return false;
  json.add(`],"continuationToken":"${last}"}`);
  yield json.take();
  return true;
}

/** In the contract's dialect, an event has a type, the name of its payload; the text is otherwise unchanged. */
function addText(json: JsonBytes, { type }: StoredEvent, part: EventText, isFirst: boolean): void {
  const hasPrefix = isFirst && type !== '' && part.length > 0;
  if (hasPrefix) json.add(`{"type":${JSON.stringify(type)},`);
  const start = hasPrefix ? 1 : 0;
  json.add(typeof part === 'string' ? part.slice(start) : part.subarray(start));
}
