import { LRUCache } from 'lru-cache';
import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { JsonScanner } from '../../platform/json/json-scanner.ts';
import { decodeJsonString, decodeStringInSlices } from '../../platform/json/json-strings.ts';
import type { JsonSpan } from '../../platform/json/json-text.ts';
import { denseSliceBytes, Slices, scanInSlices } from '../../platform/slices/slices.ts';

/** Limit of the column. No update reaches it, since each number belongs to a checkpoint. */
const maxSequenceNumber = 2 ** 31 - 1;

/** Replaces the bytes [start, end) of the base. */
export interface DeltaEdit {
  readonly start: number;
  readonly end: number;
  readonly newText: Buffer;
}

/** The body (PatchUpdateCheckpointDeltaRequest in sdk/go/common/apitype/updates.go). */
export interface CheckpointDelta {
  readonly deploymentVersion: number;
  readonly sequenceNumber: number;
  /** SHA-256 of the resulting text, lower-case hex. */
  readonly checkpointHash: string;
  /** In ascending order; no two overlap. */
  readonly edits: readonly DeltaEdit[];
}

/** The CLI reacts to a 400 by sending the whole checkpoint. */
export class InvalidDeltaError extends InvalidRequestError {
  override readonly name = 'InvalidDeltaError';
}

/** Throws InvalidDeltaError if the body is JSON of another shape, JsonSyntaxError if it is not JSON. */
export async function parseDelta(body: Buffer): Promise<CheckpointDelta> {
  const members = new Map<string, JsonSpan>();
  let isObject = false;
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, kind, start, end) => {
      if (path.length === 1) members.set(String(path[0]), { kind, start, end });
      else isObject = kind === 'object';
    },
  });
  await scanInSlices(scanner, body);
  scanner.end();
  if (!isObject) throw new InvalidDeltaError('The checkpoint delta is not an object');
  const hash = readString(body, members.get('checkpointHash'));
  if (hash === null || !/^[0-9a-f]{64}$/i.test(hash)) {
    throw new InvalidDeltaError('checkpointHash is not a SHA-256 in hexadecimal');
  }
  const list = members.get('deploymentDelta');
  if (list?.kind !== 'array') throw new InvalidDeltaError('deploymentDelta is not an array');
  const edits = await parseEdits(body.subarray(list.start, list.end));
  assertEdits(edits);
  return {
    deploymentVersion: readNatural(body, members.get('version'), 'version'),
    sequenceNumber: readNatural(body, members.get('sequenceNumber'), 'sequenceNumber', maxSequenceNumber),
    checkpointHash: hash.toLowerCase(),
    edits,
  };
}

/** Shorter chunks are joined: a delta may have 100,000 edits of a few bytes. */
const joinedBytes = 64 * 1024;

/** The cost of an edit beyond its bytes, in bytes that could be scanned instead. */
const editCost = 1024;

/**
 * Large chunks share memory with the base's chunks. Throws InvalidDeltaError. If an edit lies beyond the end of the base, most of the text
 * before the edit is yielded first.
 */
export async function* spliceDelta(base: AsyncIterable<Buffer>, edits: readonly DeltaEdit[]): AsyncGenerator<Buffer> {
  assertEdits(edits);
  const slices = new Slices();
  let small: Buffer[] = [];
  let smallBytes = 0;
  for await (const piece of splice(base, edits)) {
    if (piece.length < joinedBytes) {
      small.push(piece);
      smallBytes += piece.length;
      await slices.spend(editCost);
      if (smallBytes < joinedBytes) continue;
    }
    if (smallBytes > 0) yield Buffer.concat(small, smallBytes);
    small = [];
    smallBytes = 0;
    if (piece.length >= joinedBytes) yield piece;
  }
  if (smallBytes > 0) yield Buffer.concat(small, smallBytes);
}

async function* splice(base: AsyncIterable<Buffer>, edits: readonly DeltaEdit[]): AsyncGenerator<Buffer> {
  const cursor = new EditCursor(edits);
  for await (const chunk of base) yield* cursor.push(chunk);
  yield* cursor.end();
}

class EditCursor {
  readonly #edits: readonly DeltaEdit[];
  #next = 0;
  /** Offset of the next chunk in the base. */
  #offset = 0;
  #dropTo = 0;

  constructor(edits: readonly DeltaEdit[]) {
    this.#edits = edits;
  }

  *push(chunk: Buffer): Generator<Buffer> {
    const base = this.#offset;
    this.#offset += chunk.length;
    let from = Math.max(0, Math.min(this.#dropTo - base, chunk.length));
    let edit = this.#edits[this.#next];
    // An edit at the chunk's end belongs to the next chunk, or to `end`.
    while (edit && edit.start < this.#offset) {
      const start = edit.start - base;
      if (start > from) yield chunk.subarray(from, start);
      if (edit.newText.length > 0) yield edit.newText;
      this.#dropTo = edit.end;
      from = Math.min(edit.end - base, chunk.length);
      edit = this.#edits[++this.#next];
    }
    if (from < chunk.length) yield from === 0 ? chunk : chunk.subarray(from);
  }

  *end(): Generator<Buffer> {
    const length = this.#offset;
    // The edits are in order: if the last one lies within the base, all do.
    const last = Math.max(this.#dropTo, this.#edits.at(-1)?.end ?? 0);
    if (last > length) throw beyondEnd(last, length);
    for (const { newText } of this.#edits.slice(this.#next)) if (newText.length > 0) yield newText;
  }
}

function beyondEnd(offset: number, length: number): InvalidDeltaError {
  return new InvalidDeltaError(`The delta edits the base up to byte ${offset}, but it has only ${length} bytes`);
}

/** Several insertions at one offset are applied in order. */
function assertEdits(edits: readonly DeltaEdit[]): void {
  let previousEnd = 0;
  edits.forEach(({ start, end }, i) => {
    if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0) {
      throw new InvalidDeltaError(`Edit ${i} of the delta has an offset that is negative or not an integer`);
    }
    if (end < start) throw new InvalidDeltaError(`Edit ${i} of the delta ends before it starts`);
    if (start < previousEnd) {
      throw new InvalidDeltaError(`Edit ${i} of the delta overlaps the edit before it or is out of order`);
    }
    previousEnd = end;
  });
}

interface RawEdit {
  start?: number;
  end?: number;
  newText?: JsonSpan;
}

/** Matches names in any case, as Go does; gotextdiff capitalizes `Span` and `NewText`, unlike the other fields. */
async function parseEdits(list: Buffer): Promise<DeltaEdit[]> {
  const edits: Required<RawEdit>[] = [];
  let raw: RawEdit = {};
  const scanner = new JsonScanner({
    reportDepth: 4,
    onValue: (path, kind, start, end) => {
      if (path.length === 1) {
        edits.push(assertComplete(raw, edits.length));
        raw = {};
        return;
      }
      const span = { kind, start, end };
      const [, first, second, third] = path.map(nameOf);
      if (path.length === 4 && first === 'span' && third === 'offset') {
        if (second === 'start') raw.start = readNatural(list, span, `The start of edit ${edits.length}`);
        else if (second === 'end') raw.end = readNatural(list, span, `The end of edit ${edits.length}`);
      } else if (path.length === 2 && first === 'newtext') {
        if (kind !== 'string') throw new InvalidDeltaError(`NewText of edit ${edits.length} is not a string`);
        raw.newText = span;
      }
    },
  });
  await scanInSlices(scanner, list, denseSliceBytes);
  scanner.end();
  const slices = new Slices();
  const parsed: DeltaEdit[] = [];
  for (const { start, end, newText } of edits) {
    parsed.push({ start, end, newText: await decodeStringInSlices(list, newText.start, newText.end) });
    await slices.spend(editCost + newText.end - newText.start);
  }
  return parsed;
}

/** Empty for a name longer than any in an edit: it would be converted again for each value inside. */
function nameOf(key: string | number): string {
  return typeof key === 'string' && key.length <= 10 ? key.toLowerCase() : '';
}

function assertComplete({ start, end, newText }: RawEdit, position: number): Required<RawEdit> {
  if (start === undefined || end === undefined || newText === undefined) {
    throw new InvalidDeltaError(`Edit ${position} of the delta lacks Span.start.offset, Span.end.offset or NewText`);
  }
  return { start, end, newText };
}

function readString(text: Buffer, span: JsonSpan | undefined): string | null {
  return span?.kind === 'string' ? decodeJsonString(text, span.start, span.end) : null;
}

function readNatural(
  text: Buffer,
  span: JsonSpan | undefined,
  what: string,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  const digits = span?.kind === 'number' ? text.toString('latin1', span.start, span.end) : '';
  const value = /^\d+$/.test(digits) ? Number(digits) : Number.NaN;
  if (!(value <= max)) throw new InvalidDeltaError(`${what} is not an integer from 0 to ${max}`);
  return value;
}

/** Memory of all texts in a process, in bytes. */
const maxBaseBytes = 16 * 1024 * 1024;
/** A text is dropped when its update has written no delta for this long. */
const idleMs = 60_000;

export interface DeltaBase {
  readonly checkpointId: string;
  readonly text: Buffer;
}

/**
 * Texts of checkpoints that this process wrote as deltas. A text may be out of date: the hash in the next delta and the statement that
 * commits it detect this.
 */
export class DeltaBases {
  readonly #bases = new LRUCache<string, DeltaBase>({
    maxSize: maxBaseBytes,
    sizeCalculation: ({ text }) => Math.max(text.length, 1),
    ttl: idleMs,
    ttlAutopurge: true,
  });

  take(updateId: string): DeltaBase | null {
    const base = this.#bases.get(updateId) ?? null;
    this.#bases.delete(updateId);
    return base;
  }

  keep(updateId: string, base: DeltaBase): void {
    this.#bases.set(updateId, base);
  }
}
