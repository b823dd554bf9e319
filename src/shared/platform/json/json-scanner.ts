import { InvalidRequestError } from '../errors/errors.ts';
import {
  canNumberEnd,
  isHex,
  literalsByFirst,
  nextState,
  type SkimCursor,
  State,
  skim,
  stringEnd,
  Utf8Check,
} from './json-skim.ts';
import { memberName } from './json-strings.ts';

/** Byte offsets; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'literal';

/**
 * Called when a value at depth `reportDepth` or above ends. The root has depth 0, its members depth 1. `path[d]` leads to depth `d + 1`,
 * and is only valid during the call.
 */
export type ValueListener = (path: readonly (string | number)[], kind: JsonKind, start: number, end: number) => void;

/** Called when an object or array begins; see ValueListener. */
export type OpenListener = (path: readonly (string | number)[], kind: 'object' | 'array', start: number) => void;

export interface JsonScannerOptions {
  readonly reportDepth: number;
  readonly onValue: ValueListener;
  readonly onOpen?: OpenListener | undefined;
  /** A skipped object or array is reported, but nothing inside it. */
  readonly skips?: (path: readonly (string | number)[]) => boolean;
  /** The CLI's own decoder allows 10,000. */
  readonly maxDepth?: number;
}

/** The text is not a single JSON value in UTF-8. `offset` is the byte at which this became certain. */
export class JsonSyntaxError extends InvalidRequestError {
  override readonly name = 'JsonSyntaxError';
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(`Malformed JSON: ${message} at byte ${offset}`);
    this.offset = offset;
  }
}

const defaultMaxDepth = 10_000;
const maxKeyBytes = 1024 * 1024;

/**
 * Validates one JSON text in chunks, and reports the positions of its outer values without building them. Memory use does not depend on the
 * size of the text (one byte per open container).
 */
export class JsonScanner {
  readonly #reportDepth: number;
  readonly #onValue: ValueListener;
  readonly #onOpen: OpenListener | undefined;
  readonly #skips: JsonScannerOptions['skips'];
  readonly #maxDepth: number;
  /** Values are currently reported down to this depth: less than `#reportDepth` within a skipped container. */
  #limit: number;
  readonly #cursor: SkimCursor;
  #containers = new Uint8Array(64);
  #depth = 0;
  #state: number = State.value;
  #offset = 0;
  #inKey = false;
  #hexLeft = 0;
  #literal: Buffer = Buffer.alloc(0);
  #literalOffset = 0;
  #path: (string | number)[] = [];
  #starts: number[] = [];
  #scalarStart = 0;
  #keyParts: Buffer[] = [];
  #keyBytes = 0;
  readonly #utf8 = new Utf8Check();

  constructor(options: JsonScannerOptions) {
    this.#reportDepth = options.reportDepth;
    this.#onValue = options.onValue;
    this.#onOpen = options.onOpen;
    this.#skips = options.skips;
    this.#maxDepth = options.maxDepth ?? defaultMaxDepth;
    this.#limit = options.reportDepth;
    this.#cursor = { state: State.value, inKey: false, depth: 0, containers: this.#containers };
  }

  /** Throws JsonSyntaxError. */
  write(chunk: Buffer): void {
    if (!this.#utf8.write(chunk)) throw new JsonSyntaxError('Text is not UTF-8', this.#offset);
    const base = this.#offset;
    const length = chunk.length;
    let state = this.#state;
    let keyFrom = this.#inKey ? 0 : -1;
    let i = 0;
    while (i < length) {
      if (this.#depth > this.#limit && this.#depth > 0) {
        this.#state = state;
        i = this.#skim(chunk, i);
        state = this.#state;
        if (i === length) break;
      }
      const byte = chunk[i] as number;
      switch (state) {
        case State.string: {
          i = stringEnd(chunk, i);
          if (i === length) continue;
          const c = chunk[i] as number;
          if (c === 0x22) {
            if (this.#inKey) {
              this.#endKey(chunk, keyFrom, i, base + i);
              keyFrom = -1;
              state = State.colon;
            } else {
              state = this.#endScalar('string', base + i + 1);
            }
          } else if (c === 0x5c) state = State.escape;
          else throw new JsonSyntaxError('Control character in string', base + i);
          break;
        }
        case State.escape:
          if (byte === 0x75) {
            this.#hexLeft = 4;
            state = State.hex;
          } else if (nextState(state, byte) === State.string) state = State.string;
          else throw new JsonSyntaxError('Bad escape in string', base + i);
          break;
        case State.hex:
          if (!isHex(byte)) throw new JsonSyntaxError('Bad \\u escape in string', base + i);
          if (--this.#hexLeft === 0) state = State.string;
          break;
        case State.literal:
          if (byte !== this.#literal[this.#literalOffset]) throw this.#unexpected(byte, base + i);
          if (++this.#literalOffset === this.#literal.length) state = this.#endScalar('literal', base + i + 1);
          break;
        default: {
          if (state >= State.minus && state <= State.exponentDigits) {
            const next = nextState(state, byte);
            if (next >= 0) {
              state = next;
              break;
            }
            if (!canNumberEnd(state)) throw new JsonSyntaxError('Bad number', base + i);
            state = this.#endScalar('number', base + i);
            continue;
          }
          if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) break;
          state = this.#structural(state, byte, base + i);
          if (state === State.string && this.#inKey) keyFrom = i + 1;
        }
      }
      i++;
    }
    if (this.#inKey && keyFrom >= 0) this.#addKeyPart(chunk.subarray(keyFrom), base);
    this.#state = state;
    this.#offset = base + length;
  }

  /** Returns the length of the text in bytes. Throws JsonSyntaxError if it is incomplete. */
  end(): number {
    if (this.#utf8.isCut) throw new JsonSyntaxError('Text is not UTF-8', this.#offset);
    if (this.#depth === 0 && canNumberEnd(this.#state)) this.#state = this.#endScalar('number', this.#offset);
    if (this.#state !== State.done) throw new JsonSyntaxError('Unexpected end of JSON', this.#offset);
    return this.#offset;
  }

  /** Returns the position where it stopped. */
  #skim(chunk: Buffer, from: number): number {
    const cursor = this.#cursor;
    cursor.state = this.#state;
    cursor.inKey = this.#inKey;
    cursor.depth = this.#depth;
    cursor.containers = this.#containers;
    const to = skim(chunk, from, cursor, Math.max(this.#limit, 0), this.#maxDepth);
    this.#state = cursor.state;
    this.#inKey = cursor.inKey;
    this.#depth = cursor.depth;
    return to;
  }

  #structural(state: number, byte: number, at: number): number {
    switch (state) {
      case State.valueOrEnd:
        return byte === 0x5d ? this.#close(at) : this.#beginValue(byte, at);
      case State.value:
        return this.#beginValue(byte, at);
      case State.keyOrEnd:
        return byte === 0x7d ? this.#close(at) : this.#beginKey(byte, at);
      case State.key:
        return this.#beginKey(byte, at);
      case State.colon:
        if (byte !== 0x3a) throw this.#unexpected(byte, at);
        return State.value;
      case State.afterValue: {
        const isObject = this.#containers[this.#depth - 1] === 1;
        if (byte === 0x2c) {
          if (isObject) return State.key;
          if (this.#depth <= this.#limit) {
            this.#path[this.#depth - 1] = (this.#path[this.#depth - 1] as number) + 1;
          }
          return State.value;
        }
        if (byte === (isObject ? 0x7d : 0x5d)) return this.#close(at);
        throw this.#unexpected(byte, at);
      }
      default:
        throw new JsonSyntaxError('Text after the JSON value', at);
    }
  }

  #beginKey(byte: number, at: number): number {
    if (byte !== 0x22) throw this.#unexpected(byte, at);
    this.#inKey = true;
    return State.string;
  }

  #beginValue(byte: number, at: number): number {
    if (byte === 0x7b || byte === 0x5b) {
      if (this.#depth >= this.#maxDepth) throw new JsonSyntaxError(`Nesting deeper than ${this.#maxDepth}`, at);
      if (this.#depth === this.#containers.length) {
        const larger = new Uint8Array(this.#containers.length * 4);
        larger.set(this.#containers);
        this.#containers = larger;
      }
      if (this.#depth <= this.#limit) {
        this.#starts[this.#depth] = at;
        this.#path.length = this.#depth;
        this.#onOpen?.(this.#path, byte === 0x7b ? 'object' : 'array', at);
        if (this.#skips?.(this.#path)) this.#limit = this.#depth;
      }
      this.#containers[this.#depth++] = byte === 0x7b ? 1 : 0;
      if (byte === 0x7b) return State.keyOrEnd;
      if (this.#depth <= this.#limit) this.#path[this.#depth - 1] = 0;
      return State.valueOrEnd;
    }
    this.#scalarStart = at;
    if (byte === 0x22) return State.string;
    if (byte === 0x2d) return State.minus;
    if (byte === 0x30) return State.zero;
    if (byte >= 0x31 && byte <= 0x39) return State.int;
    const literal = literalsByFirst[byte];
    if (!literal) throw this.#unexpected(byte, at);
    this.#literal = literal;
    this.#literalOffset = 1;
    return State.literal;
  }

  #close(at: number): number {
    const kind = this.#containers[--this.#depth] === 1 ? 'object' : 'array';
    if (this.#depth <= this.#limit) {
      this.#limit = this.#reportDepth;
      this.#path.length = this.#depth;
      this.#onValue(this.#path, kind, this.#starts[this.#depth] as number, at + 1);
    }
    return this.#depth === 0 ? State.done : State.afterValue;
  }

  #endScalar(kind: JsonKind, end: number): number {
    if (this.#depth <= this.#limit) {
      this.#path.length = this.#depth;
      this.#onValue(this.#path, kind, this.#scalarStart, end);
    }
    return this.#depth === 0 ? State.done : State.afterValue;
  }

  #addKeyPart(part: Buffer, at: number): void {
    if (this.#depth > this.#limit) return;
    this.#keyBytes += part.length;
    if (this.#keyBytes > maxKeyBytes) throw new JsonSyntaxError('Member name too long', at);
    this.#keyParts.push(Buffer.from(part));
  }

  #endKey(chunk: Buffer, from: number, to: number, at: number): void {
    this.#inKey = false;
    if (this.#depth > this.#limit) return;
    if (this.#keyParts.length === 0) {
      this.#path[this.#depth - 1] = memberName(chunk, from, to);
      return;
    }
    this.#addKeyPart(chunk.subarray(from, to), at);
    const whole = Buffer.concat(this.#keyParts);
    this.#keyParts = [];
    this.#keyBytes = 0;
    this.#path[this.#depth - 1] = memberName(whole, 0, whole.length);
  }

  #unexpected(byte: number, at: number): JsonSyntaxError {
    const shown = byte > 0x20 && byte < 0x7f ? `'${String.fromCharCode(byte)}'` : `byte 0x${byte.toString(16)}`;
    return new JsonSyntaxError(`Unexpected ${shown}`, at);
  }
}
