import { promisify } from 'node:util';
import { constants, zstdCompress } from 'node:zlib';
import { createArchivingRepository } from '../../shared/events/archiving-repository.ts';
import { type EventToArchive, type Frame, frameBytes, framesOf } from '../../shared/events/event-frame.ts';
import { createEventRepository, type EventRepository } from '../../shared/events/event-repository.ts';
import { createEventSegmentRepository } from '../../shared/events/event-segment-repository.ts';
import type { EventSegments } from '../../shared/events/event-segments.ts';
import { IndexWriter } from '../../shared/events/segment-index.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { textInChunks } from '../../shared/platform/db/text-chunks.ts';
import type { DocumentStore } from '../../shared/state/checkpoints/document-store.ts';

const compress = promisify(zstdCompress);

/** No call waits for this compression. Higher levels take several times as long and save only a few percent. */
const zstdOptions = { params: { [constants.ZSTD_c_compressionLevel]: 9, [constants.ZSTD_c_checksumFlag]: 1 } };

/** Limits for reading rows. */
const batchRows = 2_000;
const batchBytes = 1024 * 1024;

/** The size at which a segment ends. Its rows are deleted in one transaction. */
export interface SegmentLimits {
  readonly events: number;
  /** Decompressed size. */
  readonly bytes: number;
  /** Decompressed size of each frame. */
  readonly frameBytes: number;
}

const defaultLimits: SegmentLimits = { events: 20_000, bytes: 32 * 1024 * 1024, frameBytes };

/** A segment that replaced rows. */
export interface ArchivedSegment {
  readonly events: number;
  /** Total size of the events' texts, and of their stored form. */
  readonly rawBytes: number;
  readonly storedBytes: number;
}

/** The transaction must be rolled back. */
class RowsChangedError extends Error {
  override readonly name = 'RowsChangedError';
}

/** Moves rows of ended updates into segments. */
export class EventArchiver {
  readonly #db: Database;
  readonly #events: EventRepository;
  readonly #documents: DocumentStore;
  readonly #segments: EventSegments;
  readonly #limits: SegmentLimits;

  constructor(parts: {
    db: Database;
    events: EventRepository;
    documents: DocumentStore;
    eventSegments: EventSegments;
    limits?: SegmentLimits;
  }) {
    this.#db = parts.db;
    this.#events = parts.events;
    this.#documents = parts.documents;
    this.#segments = parts.eventSegments;
    this.#limits = parts.limits ?? defaultLimits;
  }

  /**
   * Archives the rows of an ended update, which no longer change. Each segment is stored and read back before one transaction adds its row
   * and deletes the rows that it replaces, so this may stop anywhere, and run several times at once. Returns false if rows are left: the
   * update is running, its stack was deleted, another process archives it, or the signal fired.
   */
  async pack(
    updateId: string,
    onSegment: (segment: ArchivedSegment) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const frames = framesOf(this.#rowsOf(updateId), this.#limits.frameBytes);
    try {
      for (let next = await frames.next(); !next.done && !signal?.aborted; ) {
        const index = new IndexWriter();
        let rawBytes = 0;
        const encoded = async function* (limits: SegmentLimits): AsyncGenerator<Buffer> {
          do {
            const frame: Frame = next.value;
            const bytes = await compress(frame.text, zstdOptions);
            index.add(frame, bytes.length);
            for (const head of frame.heads) rawBytes += head.bytes;
            yield bytes;
            next = await frames.next();
            // A segment never ends within an event.
          } while (!next.done && (next.value.heads.length === 0 || !isFull(index, limits)));
        };
        const location = await this.#documents.saveStream(encoded(this.#limits));
        const { index: content, ...facts } = index.end();
        await this.#segments.verify(location, content, facts.sha256);
        if (!(await this.#replaceRows({ ...location, ...facts, updateId, frames: JSON.stringify(content) })))
          return false;
        await onSegment({ events: facts.eventCount, rawBytes, storedBytes: location.storedBytes });
      }
    } finally {
      await frames.return(undefined);
    }
    return createArchivingRepository(this.#db).markArchived(updateId);
  }

  async #replaceRows(
    segment: Parameters<ReturnType<typeof createEventSegmentRepository>['insert']>[0],
  ): Promise<boolean> {
    const { updateId, firstSequence, lastSequence, eventCount } = segment;
    try {
      return await this.#db.inTransaction(async (tx) => {
        if (!(await createEventSegmentRepository(tx).insert(segment))) return false;
        const deleted = await createEventRepository(tx).deleteArchived(updateId, firstSequence, lastSequence);
        if (deleted !== eventCount) throw new RowsChangedError(`${deleted} rows instead of ${eventCount}`);
        return true;
      });
    } catch (error) {
      if (error instanceof RowsChangedError) return false;
      throw error;
    }
  }

  async *#rowsOf(updateId: string): AsyncGenerator<EventToArchive> {
    for (let after = -1; ; ) {
      const rows = await this.#events.listArchivable(updateId, after, { limit: batchRows, maxBytes: batchBytes });
      for (const { event, ...head } of rows) {
        const text = event === null ? () => this.#textOf(updateId, head.sequence) : () => [Buffer.from(event)];
        yield { ...head, text };
        after = head.sequence;
      }
      if (rows.length === 0) return;
    }
  }

  async *#textOf(updateId: string, sequence: number): AsyncGenerator<Buffer> {
    const read = async (from: number, chars: number): Promise<string> =>
      (await this.#events.readText(updateId, sequence, from, chars)) ?? '';
    for await (const chunk of textInChunks(read)) yield Buffer.from(chunk);
  }
}

function isFull({ eventCount, sizeBytes }: IndexWriter, limits: SegmentLimits): boolean {
  return eventCount >= limits.events || sizeBytes >= limits.bytes;
}
