import type { EventReader } from '../../shared/events/event-reader.ts';
import type { EventSelection } from '../../shared/events/event-repository.ts';
import type { StoredEvent } from '../../shared/events/event-segments.ts';

/** Maximum number of events, and bytes, on a page; the client continues with its token. A single event may be larger. */
const page = { events: 500, bytes: 1024 * 1024 };

/**
 * A page of an update's events as JSON, read in chunks. Its token is the sequence of the last event, or `atEnd` if the page is
 * empty. A null token ends the client's loop.
 */
export async function* eventPageJson(
  events: EventReader,
  updateId: string,
  selection: EventSelection,
  atEnd: string | null,
): AsyncGenerator<string> {
  let last: number | null = null;
  let rows = 0;
  let bytes = 0;
  yield '{"events":[';
  for await (const event of events.read(updateId, selection, page)) {
    // An event that does not fit starts the next page.
    if (rows > 0 && bytes + event.bytes > page.bytes) break;
    if (rows > 0) yield ',';
    yield* eventJson(event);
    last = event.sequence;
    rows += 1;
    bytes += event.bytes;
    if (rows === page.events || bytes >= page.bytes) break;
  }
  yield `],"continuationToken":${JSON.stringify(last === null ? atEnd : String(last))}}`;
}

/** In the contract's dialect, events have a type, which is the name of their payload; the text is otherwise unchanged. */
async function* eventJson({ text, type }: StoredEvent): AsyncGenerator<string> {
  let prefix = type === '' ? '' : `{"type":${JSON.stringify(type)},`;
  let isFirst = true;
  for await (const chunk of text()) {
    if (isFirst && prefix !== '') prefix += chunk.slice(1);
    else prefix += chunk;
    isFirst = false;
    yield prefix;
    prefix = '';
  }
}
