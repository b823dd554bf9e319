import { createHash, hash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { standard } from '../platform/schema/standard-schema.ts';
import type { Frame } from './event-frame.ts';

const IndexedFrame = Type.Object({
  /** Compressed, in bytes. Frames follow each other without gaps. */
  stored: Type.Integer(),
  /** Decompressed, in bytes. */
  size: Type.Integer(),
  /** Of the decompressed frame, in base64. */
  sha256: Type.String(),
  /** The first and the last event that begin in the frame. */
  first: Type.Integer(),
  last: Type.Integer(),
  /** Counts these events. 0 if the frame continues the event of an earlier frame. */
  count: Type.Integer(),
  /** Indexes into the segment's list; -1 stands for types outside it. */
  types: Type.Array(Type.Integer()),
  /** Hashes of the events' resources: 4 bytes each, base64. */
  urns: Type.String(),
});
export type IndexedFrame = Static<typeof IndexedFrame>;

const SegmentIndex = Type.Object({ types: Type.Array(Type.String()), frames: Type.Array(IndexedFrame) });
export type SegmentIndex = Static<typeof SegmentIndex>;
const indexSchema = standard(SegmentIndex);

export interface EventFilter {
  /** Null for all resources. */
  readonly urn: string | null;
  /** Null for all types. */
  readonly types: readonly string[] | null;
}

/** Throws if the text is not an index. */
export function parseIndex(text: string): SegmentIndex {
  const checked = indexSchema['~standard'].validate(JSON.parse(text));
  if ('issues' in checked) throw new Error(`The index of a segment is not one: ${JSON.stringify(checked.issues[0])}`);
  return checked.value;
}

/** The engine has about 20 types, but clients may send any. */
const maxTypes = 200;

/** Also hashes and measures the text while the segment is written. */
export class IndexWriter {
  /** The types with their indexes. */
  readonly #types = new Map<string, number>();
  readonly #frames: IndexedFrame[] = [];
  readonly #hash = createHash('sha256');
  sizeBytes = 0;
  eventCount = 0;

  add({ text, heads }: Frame, storedBytes: number): void {
    const [first, last] = [heads.at(0), heads.at(-1)];
    const before = this.#frames.at(-1);
    this.#hash.update(text);
    this.sizeBytes += text.length;
    this.eventCount += heads.length;
    this.#frames.push({
      stored: storedBytes,
      size: text.length,
      sha256: hash('sha256', text, 'base64'),
      first: first?.sequence ?? (before as IndexedFrame).first,
      last: last?.sequence ?? (before as IndexedFrame).last,
      count: heads.length,
      types: [...new Set(heads.map(({ type }) => this.#typeNumber(type)))],
      urns: urnHashes(heads.flatMap(({ urn }) => urn ?? [])),
    });
  }

  /** Call this once, after the last frame. */
  end() {
    const frames = this.#frames;
    return {
      index: { types: [...this.#types.keys()], frames } satisfies SegmentIndex,
      sha256: this.#hash.digest(),
      sizeBytes: this.sizeBytes,
      eventCount: this.eventCount,
      firstSequence: (frames.at(0) as IndexedFrame).first,
      lastSequence: (frames.at(-1) as IndexedFrame).last,
    };
  }

  #typeNumber(type: string): number {
    const known = this.#types.get(type);
    if (known !== undefined) return known;
    if (this.#types.size === maxTypes) return -1;
    this.#types.set(type, this.#types.size);
    return this.#types.size - 1;
  }
}

/** The test has false positives, but no false negatives. */
export function frameFilter({ types }: SegmentIndex, filter: EventFilter): (frame: IndexedFrame) => boolean {
  // A type outside the list also gets the index -1.
  const wanted = filter.types && new Set(filter.types.map((type) => types.indexOf(type)));
  const urn = filter.urn === null ? null : urnHash(filter.urn);
  return (frame) =>
    frame.count > 0 &&
    (wanted === null || frame.types.some((type) => wanted.has(type))) &&
    (urn === null || hasHash(Buffer.from(frame.urns, 'base64'), urn));
}

export function selects(filter: EventFilter, event: { readonly type: string; readonly urn: string | null }): boolean {
  return (
    (filter.urn === null || filter.urn === event.urn) && (filter.types === null || filter.types.includes(event.type))
  );
}

function urnHashes(urns: readonly string[]): string {
  const hashes = [...new Set(urns)].map(urnHash);
  const bytes = Buffer.alloc(hashes.length * 4);
  for (const [at, value] of hashes.entries()) bytes.writeUInt32BE(value, at * 4);
  return bytes.toString('base64');
}

function hasHash(hashes: Buffer, wanted: number): boolean {
  for (let at = 0; at < hashes.length; at += 4) if (hashes.readUInt32BE(at) === wanted) return true;
  return false;
}

function urnHash(urn: string): number {
  return hash('sha256', urn, 'buffer').readUInt32BE(0);
}
