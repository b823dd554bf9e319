import { StringDecoder } from 'node:string_decoder';
import { textInChunks } from '../platform/db/text-chunks.ts';
import type { EventRepository, EventRow, EventSelection } from './event-repository.ts';
import { bytesIn, type EventSegments, type EventText, type StoredEvent } from './event-segments.ts';
import type { Appetite } from './segment-frames.ts';

/** Bytes of rows that are read at once. */
const chunkBytes = 256 * 1024;

export interface EventOwner {
  readonly id: string;
  /** False only if all events are archived. */
  readonly mayHaveRows: boolean;
}

/** Events may be in rows, archived, or both. */
export class EventReader {
  readonly #rows: EventRepository;
  readonly #segments: EventSegments;

  constructor(parts: { rows: EventRepository; segments: EventSegments }) {
    this.#rows = parts.rows;
    this.#segments = parts.segments;
  }

  /**
   * Yields each sequence once, several events at a time. Archiving moves rows into segments in one transaction, so an event that is in no
   * row when the rows are read is in a segment then and later. Therefore rows are always read first.
   */
  async *read(
    { id: updateId, mayHaveRows }: EventOwner,
    selection: EventSelection,
    appetite: Appetite,
  ): AsyncGenerator<readonly StoredEvent[]> {
    const { newestFirst } = selection;
    let { beyond } = selection;
    if (!mayHaveRows) {
      yield* this.#segments.read(updateId, { beyond, until: null, newestFirst }, selection, appetite);
      return;
    }
    const left = { ...appetite };
    for (;;) {
      const bounds = { limit: Math.max(1, left.events), maxBytes: Math.max(1, Math.min(chunkBytes, left.bytes)) };
      const rows = await this.#rows.list(updateId, { ...selection, beyond }, bounds);
      const last = rows.at(-1);
      const archived =
        last && !last.hasArchived
          ? none()
          : this.#segments.read(updateId, { beyond, until: last?.sequence ?? null, newestFirst }, selection, left);
      const stored = rows.map((row) => this.#eventOf(updateId, row));
      for await (const events of merged(stored, archived, newestFirst)) {
        yield events;
        left.events -= events.length;
        left.bytes -= bytesIn(events);
      }
      if (!last) return;
      beyond = last.sequence;
    }
  }

  #eventOf(updateId: string, { bytes, event, sequence, type }: EventRow): StoredEvent {
    return { sequence, type, bytes, text: event ?? (() => this.#largeText(updateId, sequence)) };
  }

  /** If the text is archived meanwhile, the rest comes from its segment. */
  async *#largeText(updateId: string, sequence: number): AsyncGenerator<EventText> {
    let isArchived = false;
    let chars = 0;
    const read = async (from: number, count: number): Promise<string> => {
      const text = await this.#rows.readText(updateId, sequence, from, count);
      isArchived = text === null;
      return text ?? '';
    };
    for await (const chunk of textInChunks(read)) {
      chars += chunk.length;
      yield chunk;
    }
    if (!isArchived) return;
    const archived = await this.#segments.find(updateId, sequence);
    for await (const chunk of archived ? charactersOf(archived.text) : []) {
      if (chars < chunk.length) yield chunk.slice(chars);
      chars = Math.max(0, chars - chunk.length);
    }
  }
}

async function* charactersOf(text: StoredEvent['text']): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  for await (const part of typeof text === 'function' ? text() : [text])
    yield typeof part === 'string' ? part : decoder.write(part);
  yield decoder.end();
}

/** Of two events with the same sequence, the archived one, which is older, is used. */
async function* merged(
  rows: readonly StoredEvent[],
  archived: AsyncGenerator<readonly StoredEvent[]>,
  newestFirst: boolean,
): AsyncGenerator<readonly StoredEvent[]> {
  const remaining = [...rows].reverse();
  for await (const events of archived) {
    if (remaining.length === 0) {
      yield events;
      continue;
    }
    const both: StoredEvent[] = [];
    for (const event of events) {
      for (let row = remaining.at(-1); row !== undefined; row = remaining.at(-1)) {
        if (newestFirst ? row.sequence < event.sequence : row.sequence > event.sequence) break;
        remaining.pop();
        if (row.sequence !== event.sequence) both.push(row);
      }
      both.push(event);
    }
    yield both;
  }
  if (remaining.length > 0) yield remaining.reverse();
}

async function* none(): AsyncGenerator<never> {}
