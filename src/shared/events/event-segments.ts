import { createHash } from 'node:crypto';
import { FaultError, UnavailableError } from '../platform/errors/errors.ts';
import type { Logger } from '../platform/logger/logger.ts';
import type { ReadOnlyMode } from '../platform/read-only/read-only-mode.ts';
import { Slices } from '../platform/slices/slices.ts';
import { formatStackRef } from '../stacks/names.ts';
import type { CheckClaim } from '../state/checkpoints/byte-check-repository.ts';
import { DamagedBytesError } from '../state/checkpoints/document-codec.ts';
import type { DocumentCopies, Proof } from '../state/checkpoints/document-copies.ts';
import { isDamage } from '../state/checkpoints/document-damage.ts';
import type { DocumentStore, StoredDocument } from '../state/checkpoints/document-store.ts';
import { eventsOf } from './event-frame.ts';
import type { EventSegmentRepository, SegmentRow, SequenceRange } from './event-segment-repository.ts';
import { type Appetite, decodeFrame, type LocatedFrame, locateFrames, runLength } from './segment-frames.ts';
import { type EventFilter, frameFilter, parseIndex, type SegmentIndex, selects } from './segment-index.ts';

/** Frames of one event that are read at once. */
const framesAtOnce = 4;
const segmentsAtOnce = 2;

/** Read from a row, or the bytes of a segment. */
export type EventText = string | Buffer;

export interface StoredEvent {
  readonly sequence: number;
  /** Empty if the event has its own `type`. */
  readonly type: string;
  readonly bytes: number;
  /** A function reads a text too large to be read with others. */
  readonly text: EventText | (() => AsyncIterable<EventText>);
}

/** A retry does not help. */
export class EventsDamagedError extends FaultError {
  override readonly name = 'EventsDamagedError';
  override readonly code = 'events-damaged';
}

type SegmentLocation = Pick<StoredDocument, 'blobKey' | 'codec' | 'inlineBytes' | 'storedBytes'>;

/** A damaged segment is marked and reported, but stays referenced. A site that another site has replaced only reports it. */
export class EventSegments {
  readonly #rows: EventSegmentRepository;
  readonly #documents: DocumentStore;
  readonly #copies: DocumentCopies;
  readonly #readOnly: ReadOnlyMode;
  readonly #logger: Logger;

  constructor(parts: {
    rows: EventSegmentRepository;
    documents: DocumentStore;
    copies: DocumentCopies;
    readOnly: ReadOnlyMode;
    logger: Logger;
  }) {
    this.#rows = parts.rows;
    this.#documents = parts.documents;
    this.#copies = parts.copies;
    this.#readOnly = parts.readOnly;
    this.#logger = parts.logger;
  }

  /**
   * Yields the selected events in the direction of reading, one frame at a time. Reads only frames that may have matches. Throws
   * EventsDamagedError and the blob store's errors.
   */
  async *read(
    updateId: string,
    range: SequenceRange,
    filter: EventFilter,
    appetite: Appetite,
  ): AsyncGenerator<readonly StoredEvent[]> {
    let { beyond } = range;
    const left = { ...appetite };
    for (;;) {
      const segments = await this.#rows.list(updateId, { ...range, beyond }, segmentsAtOnce);
      for (const segment of segments) {
        for await (const events of this.#eventsIn(segment, range, filter, left)) {
          yield events;
          left.events -= events.length;
          left.bytes -= bytesIn(events);
        }
        beyond = range.newestFirst ? segment.firstSequence : segment.lastSequence;
      }
      if (segments.length < segmentsAtOnce) return;
    }
  }

  async find(updateId: string, sequence: number): Promise<StoredEvent | null> {
    const range = { beyond: sequence - 1, until: sequence, newestFirst: false };
    for await (const [event] of this.read(updateId, range, { urn: null, types: null }, { events: 1, bytes: 0 }))
      if (event) return event;
    return null;
  }

  /**
   * Reads frame by frame, like readers of events. Throws DamagedBytesError unless the stored bytes contain the text with this index and
   * hash. Also throws the blob store's errors and the reason of `signal`.
   */
  async verify(
    location: SegmentLocation,
    { frames }: SegmentIndex,
    sha256: Buffer,
    { documents = this.#documents, signal }: { documents?: DocumentStore; signal?: AbortSignal | undefined } = {},
  ): Promise<void> {
    const whole = createHash('sha256');
    const slices = new Slices();
    let at = 0;
    // Node's decoder may stop after the first of several frames.
    for (const frame of frames) {
      signal?.throwIfAborted();
      const text = decodeFrame(frame, await documents.readRange(location, at, at + frame.stored));
      whole.update(text);
      await slices.spend(text.length);
      at += frame.stored;
    }
    if (!whole.digest().equals(sha256)) {
      throw new DamagedBytesError('The segment is not the one that was written');
    }
  }

  /** Changes nothing. Throws the blob store's errors. */
  async inspect(id: string): Promise<'intact' | 'damaged' | 'gone'> {
    const segment = await this.#rows.find(id);
    if (!segment) return 'gone';
    const damage = (await this.#findDamage(segment)) && (await this.#findDamage(segment));
    if (!damage || (await this.#prove(segment, false)) !== 'damaged') return 'intact';
    return (await this.#rows.find(id)) ? 'damaged' : 'gone';
  }

  /** Marks and reports a damaged segment. Throws the blob store's errors and the reason of `signal`. */
  async check(id: string, signal?: AbortSignal): Promise<'intact' | 'restored' | 'repaired' | 'damaged' | 'gone'> {
    const segment = await this.#rows.find(id);
    if (!segment) return 'gone';
    // One wrong read does not prove that the stored bytes are wrong.
    const damage = (await this.#findDamage(segment, signal)) && (await this.#findDamage(segment, signal));
    const proof = damage && (await this.#prove(segment));
    if (damage && proof === 'damaged') return (await this.#report(segment, damage)) ? 'damaged' : 'gone';
    if (!this.#readOnly.isFenced) await this.#rows.markIntact(id);
    return proof === 'repaired' ? 'repaired' : segment.damaged ? 'restored' : 'intact';
  }

  async #findDamage(segment: SegmentRow, signal?: AbortSignal): Promise<Error | null> {
    try {
      await this.verify(segment, parseIndex(segment.frames), segment.sha256, { signal });
      return null;
    } catch (error) {
      if (isDamage(error)) return error;
      throw error;
    }
  }

  claimChecks(claim: CheckClaim) {
    return this.#rows.claimChecks(claim);
  }

  listAfter(after: string, limit: number): Promise<string[]> {
    return this.#rows.listAfter(after, limit);
  }

  listOfUpdates(updateIds: readonly string[]): Promise<string[]> {
    return this.#rows.listOfUpdates(updateIds);
  }

  findOwner(id: string) {
    return this.#rows.findOwner(id);
  }

  readStatistics() {
    return this.#rows.readStatistics();
  }

  async *#eventsIn(
    segment: SegmentRow,
    { beyond, newestFirst, until }: SequenceRange,
    filter: EventFilter,
    left: Appetite,
  ): AsyncGenerator<readonly StoredEvent[]> {
    const frames = locateFrames(parseIndex(segment.frames));
    const mayHave = frameFilter(frames.index, filter);
    const [low, high] = newestFirst ? [until ?? 0, beyond - 1] : [beyond + 1, until ?? Number.MAX_SAFE_INTEGER];
    const wanted = frames.all.filter((frame) => frame.first <= high && frame.last >= low && mayHave(frame));
    if (newestFirst) wanted.reverse();
    for (let at = 0; at < wanted.length; ) {
      const run = wanted.slice(at, at + runLength(wanted.slice(at), { low, high }, left));
      at += run.length;
      for await (const { frame, text } of this.#open(segment, run)) {
        const events = eventsOf(text).filter(
          (event) => event.sequence >= low && event.sequence <= high && selects(filter, event),
        );
        if (newestFirst) events.reverse();
        if (events.length === 0) continue;
        yield events.map(({ sequence, type, bytes, start }) => {
          const first = text.subarray(start, start + bytes);
          const parts = () => this.#textOf(segment, frames.all, frame, first, bytes);
          return { sequence, type, bytes, text: first.length === bytes ? first : parts };
        });
      }
    }
  }

  /** The event is larger than its frame. */
  async *#textOf(
    segment: SegmentRow,
    frames: readonly LocatedFrame[],
    frame: LocatedFrame,
    first: Buffer,
    bytes: number,
  ): AsyncGenerator<Buffer> {
    yield first;
    let left = bytes - first.length;
    for (let number = frame.number + 1; left > 0; number += framesAtOnce) {
      const end = Math.min(number + framesAtOnce, number + Math.ceil(left / (frames[number]?.size ?? left)));
      const rest = frames.slice(number, end);
      if (rest.length === 0 || rest.some(({ count }) => count > 0)) {
        throw new Error(`Event ${frame.first} of segment ${segment.id} has no end`);
      }
      for await (const { text } of this.#open(segment, rest)) {
        yield text;
        left -= text.length;
      }
    }
  }

  /** Reads adjacent frames at once and decompresses them one by one. */
  async *#open(
    segment: SegmentRow,
    run: readonly LocatedFrame[],
  ): AsyncGenerator<{ readonly frame: LocatedFrame; readonly text: Buffer }> {
    const start = Math.min(...run.map(({ at }) => at));
    const end = Math.max(...run.map(({ at, stored }) => at + stored));
    const slices = new Slices();
    let encoded: Buffer | null = null;
    for (const frame of run) {
      const text = async (isAgain: boolean): Promise<Buffer> => {
        if (isAgain || !encoded) encoded = await this.#documents.readRange(segment, start, end);
        return decodeFrame(frame, encoded.subarray(frame.at - start, frame.at - start + frame.stored));
      };
      const found = await text(false).catch(async (error: unknown) => {
        if (!isDamage(error)) throw error;
        if (this.#copies.seen.isTrusted(segment.id) || (await this.#prove(segment)) === 'damaged')
          return this.#refuse(segment, error);
        return text(true).catch((again: unknown) => {
          if (!isDamage(again)) throw again;
          // The check has just found the right bytes.
          throw new UnavailableError('The events were not read correctly; please retry', { cause: again });
        });
      });
      yield { frame, text: found };
      await slices.spend(found.length);
    }
  }

  #prove(segment: SegmentRow, repairs = true): Promise<Proof> {
    const index = parseIndex(segment.frames);
    return this.#copies.prove((documents) => this.verify(segment, index, segment.sha256, { documents }), { repairs });
  }

  async #refuse(segment: SegmentRow, damage: Error): Promise<never> {
    if (!this.#copies.seen.isTrusted(segment.id)) await this.#report(segment, damage);
    throw new EventsDamagedError(
      `The server's copy of events ${segment.firstSequence} to ${segment.lastSequence} of this update is damaged. Ask an administrator to see docs/runbook.md#holdfastdocumentsdamaged.`,
      { cause: damage },
    );
  }

  /** Returns false if the segment is gone. */
  async #report(segment: SegmentRow, damage: Error): Promise<boolean> {
    const marked = this.#readOnly.isFenced
      ? { isNew: this.#copies.seen.note(segment.id) && !segment.damaged }
      : await this.#rows.markDamaged(segment.id);
    if (!marked) return false;
    const owner = await this.#rows.findOwner(segment.id);
    const facts = {
      segmentId: segment.id,
      blobKey: segment.blobKey,
      stack: owner && formatStackRef(owner),
      updateId: owner?.updateId,
      err: damage,
    };
    if (marked.isNew) this.#logger.error(facts, 'archived events are damaged');
    else this.#logger.warn(facts, 'archived events are still damaged');
    return true;
  }
}

export function bytesIn(events: readonly StoredEvent[]): number {
  return events.reduce((sum, { bytes }) => sum + bytes, 0);
}
