import { textInChunks } from '../platform/db/text-chunks.ts';
import type { EventRepository, EventRow, EventSelection } from './event-repository.ts';
import type { Appetite, EventSegments, StoredEvent } from './event-segments.ts';

/** Bytes of rows read at once. */
const chunkBytes = 256 * 1024;

/** Reads the events of an update, whether they are in rows, packed, or both. */
export class EventReader {
  readonly #rows: EventRepository;
  readonly #segments: EventSegments;

  constructor(parts: { rows: EventRepository; segments: EventSegments }) {
    this.#rows = parts.rows;
    this.#segments = parts.segments;
  }

  /**
   * Events in the selection's order, each sequence once. Packing moves rows into segments in one transaction, so what is not in a
   * row when the rows are read is in a segment then and later: rows are always read first.
   */
  async *read(updateId: string, selection: EventSelection, appetite: Appetite): AsyncGenerator<StoredEvent> {
    const { newestFirst } = selection;
    let { beyond } = selection;
    const left = { ...appetite };
    for (;;) {
      const bounds = { limit: Math.max(1, left.events), maxBytes: Math.max(1, Math.min(chunkBytes, left.bytes)) };
      const rows = await this.#rows.list(updateId, { ...selection, beyond }, bounds);
      const last = rows.at(-1);
      const packed =
        last && !last.hasPacked
          ? none()
          : this.#segments.read(updateId, { beyond, until: last?.sequence ?? null, newestFirst }, selection, left);
      const stored = rows.map((row) => this.#eventOf(updateId, row));
      for await (const event of merged(stored, packed, newestFirst)) {
        yield event;
        left.events--;
        left.bytes -= event.bytes;
      }
      if (!last) return;
      beyond = last.sequence;
    }
  }

  #eventOf(updateId: string, { bytes, event, sequence, type }: EventRow): StoredEvent {
    return { sequence, type, bytes, text: event === null ? () => this.#largeText(updateId, sequence) : () => [event] };
  }

  /** A text that is read in chunks, the rest of it from its segment if it is packed meanwhile. */
  async *#largeText(updateId: string, sequence: number): AsyncGenerator<string> {
    let isPacked = false;
    let chars = 0;
    const read = async (from: number, count: number): Promise<string> => {
      const text = await this.#rows.readText(updateId, sequence, from, count);
      isPacked = text === null;
      return text ?? '';
    };
    for await (const chunk of textInChunks(read)) {
      chars += chunk.length;
      yield chunk;
    }
    if (!isPacked) return;
    for await (const chunk of (await this.#segments.find(updateId, sequence))?.text() ?? []) {
      if (chars < chunk.length) yield chunk.slice(chars);
      chars = Math.max(0, chars - chunk.length);
    }
  }
}

/** Both in order; of two with the same sequence the packed one, which was there first. */
async function* merged(
  rows: readonly StoredEvent[],
  packed: AsyncGenerator<StoredEvent>,
  newestFirst: boolean,
): AsyncGenerator<StoredEvent> {
  const remaining = [...rows].reverse();
  for await (const event of packed) {
    for (let row = remaining.at(-1); row !== undefined; row = remaining.at(-1)) {
      if (newestFirst ? row.sequence < event.sequence : row.sequence > event.sequence) break;
      remaining.pop();
      if (row.sequence !== event.sequence) yield row;
    }
    yield event;
  }
  for (let row = remaining.pop(); row !== undefined; row = remaining.pop()) yield row;
}

async function* none(): AsyncGenerator<never> {}
