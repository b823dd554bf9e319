import type { EventRepository, EventRow, EventSelection } from '../../shared/events/event-repository.ts';
import { textInChunks } from '../../shared/platform/db/text-chunks.ts';
import { chunkBytes } from '../streamed-response.ts';

/** Maximum number of events, and bytes, on a page; the client continues with its token. A single event may be larger. */
const pageRows = 500;
const pageBytes = 1024 * 1024;

/**
 * A page of an update's events as JSON, read in chunks. Its token is the sequence of the last event, or `atEnd` if the page is
 * empty. A null token ends the client's loop.
 */
export async function* eventPageJson(
  events: EventRepository,
  updateId: string,
  selection: EventSelection,
  atEnd: string | null,
): AsyncGenerator<string> {
  let { after } = selection;
  let rows = 0;
  let bytes = 0;
  yield '{"events":[';
  while (rows < pageRows && bytes < pageBytes) {
    const bounds = { limit: pageRows - rows, maxBytes: Math.min(chunkBytes, pageBytes - bytes) };
    const batch = await events.list(updateId, { ...selection, after }, bounds);
    for (const row of batch) {
      // An event that does not fit starts the next page.
      if (rows > 0 && bytes + row.bytes > pageBytes) {
        bytes = pageBytes;
        break;
      }
      if (rows > 0) yield ',';
      yield* eventJson(events, updateId, row);
      rows += 1;
      bytes += row.bytes;
      after = row.sequence;
    }
    if (batch.length === 0) break;
  }
  yield `],"continuationToken":${JSON.stringify(rows > 0 ? String(after) : atEnd)}}`;
}

/** In the contract's dialect, events have a type, which is the name of their payload; the text is otherwise unchanged. */
async function* eventJson(events: EventRepository, updateId: string, row: EventRow): AsyncGenerator<string> {
  let prefix = row.type === '' ? '' : `{"type":${JSON.stringify(row.type)},`;
  const text =
    row.event === null
      ? textInChunks((from, chars) => events.readText(updateId, row.sequence, from, chars))
      : [row.event];
  let isFirst = true;
  for await (const chunk of text) {
    if (isFirst && prefix !== '') prefix += chunk.slice(1);
    else prefix += chunk;
    isFirst = false;
    yield prefix;
    prefix = '';
  }
}
