import type { EventRepository, EventRow, EventSelection } from '../../shared/events/event-repository.ts';
import { textInChunks } from '../../shared/platform/db/text-chunks.ts';
import { chunkBytes } from '../streamed-response.ts';

/** Most events and bytes of a page; the client asks on with its token. A single event may be larger. */
const pageRows = 500;
const pageBytes = 1024 * 1024;

/**
 * A page of an update's events as JSON, read piece by piece. Its token is the last event's sequence; of a page without events it
 * is `atEnd`, and null ends the client's loop.
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
    const piece = await events.list(updateId, { ...selection, after }, bounds);
    for (const row of piece) {
      // One that is large begins a page of its own.
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
    if (piece.length === 0) break;
  }
  yield `],"continuationToken":${JSON.stringify(rows > 0 ? String(after) : atEnd)}}`;
}

/** The contract's events carry their type, which is the name of their payload; the text stays otherwise as it is. */
async function* eventJson(events: EventRepository, updateId: string, row: EventRow): AsyncGenerator<string> {
  let rest = row.type === '' ? '' : `{"type":${JSON.stringify(row.type)},`;
  const text =
    row.event === null
      ? textInChunks((from, chars) => events.readText(updateId, row.sequence, from, chars))
      : [row.event];
  let isFirst = true;
  for await (const piece of text) {
    if (isFirst && rest !== '') rest += piece.slice(1);
    else rest += piece;
    isFirst = false;
    yield rest;
    rest = '';
  }
}
