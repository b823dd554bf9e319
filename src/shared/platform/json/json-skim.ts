import { isUtf8 } from 'node:buffer';

/** States of the JSON scanner between two bytes. */
export const State = {
  value: 0,
  valueOrEnd: 1,
  keyOrEnd: 2,
  key: 3,
  colon: 4,
  afterValue: 5,
  string: 6,
  escape: 7,
  hex: 8,
  literal: 9,
  minus: 10,
  zero: 11,
  int: 12,
  dot: 13,
  fraction: 14,
  exponent: 15,
  exponentSign: 16,
  exponentDigits: 17,
  done: 18,
} as const;

/** All steps of `skim` other than entering the next state. */
const Action = {
  beginKey: 32,
  openObject: 33,
  openArray: 34,
  closeObject: 35,
  closeArray: 36,
  comma: 37,
  beginLiteral: 38,
  endNumber: 39,
  leave: 255,
} as const;

/** The scanner's position within containers that it does not report. */
export interface SkimCursor {
  state: number;
  inKey: boolean;
  depth: number;
  /** 1 for each open container that is an object, from the outermost. */
  containers: Uint8Array;
}

/** `steps[state << 8 | byte]` is the next state, or an action. */
const steps = createSteps();

/** 0 for bytes that may occur unescaped in a string. */
const special = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 || byte === 0x22 || byte === 0x5c ? 1 : 0));

export const literalsByFirst: readonly (Buffer | undefined)[] = Array.from({ length: 128 }, (_, byte) =>
  [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')].find((literal) => literal[0] === byte),
);

/**
 * Skips valid JSON, many times faster than a scan with reports. Returns the position of the first byte that it leaves to the scanner. This
 * byte is invalid, ends a container at `floor`, opens a container beyond `maxDepth` or the array of containers, or belongs to an escape or
 * literal that continues in the next chunk. May return `from`.
 */
export function skim(chunk: Buffer, from: number, cursor: SkimCursor, floor: number, maxDepth: number): number {
  const { containers } = cursor;
  const length = chunk.length;
  const deepest = Math.min(maxDepth, containers.length);
  let { state, inKey, depth } = cursor;
  let isObject = containers[depth - 1] === 1;
  let i = from;
  scan: while (i < length) {
    if (state === State.string) {
      i = stringEnd(chunk, i);
      if (i === length) break;
      const byte = chunk[i] as number;
      if (byte === 0x22) {
        state = inKey ? State.colon : State.afterValue;
        inKey = false;
        i++;
        continue;
      }
      // The byte is a control character or a backslash.
      if (byte !== 0x5c) break;
      state = State.escape;
      i++;
      continue;
    }
    const step = steps[(state << 8) | (chunk[i] as number)] as number;
    if (step < Action.beginKey) {
      state = step;
      i++;
      continue;
    }
    switch (step) {
      case Action.beginKey:
        inKey = true;
        state = State.string;
        break;
      case Action.openObject:
      case Action.openArray:
        if (depth >= deepest) break scan;
        isObject = step === Action.openObject;
        containers[depth++] = isObject ? 1 : 0;
        state = isObject ? State.keyOrEnd : State.valueOrEnd;
        break;
      case Action.closeObject:
      case Action.closeArray:
        if (isObject !== (step === Action.closeObject) || depth - 1 <= floor) break scan;
        depth--;
        isObject = containers[depth - 1] === 1;
        state = State.afterValue;
        break;
      case Action.comma:
        state = isObject ? State.key : State.value;
        break;
      case Action.beginLiteral: {
        const end = literalEnd(chunk, i);
        if (end < 0) break scan;
        state = State.afterValue;
        i = end - 1;
        break;
      }
      case Action.endNumber:
        state = State.afterValue;
        // The next step processes the byte after the number.
        i--;
        break;
      default: {
        if (state !== State.escape || !isEscapedUnit(chunk, i)) break scan;
        state = State.string;
        i += 4;
      }
    }
    i++;
  }
  cursor.state = state;
  cursor.inKey = inKey;
  cursor.depth = depth;
  return i;
}

/** Returns -1 if the byte is invalid in this number or escape. */
export function nextState(state: number, byte: number): number {
  const step = steps[(state << 8) | byte] as number;
  return step < Action.beginKey ? step : -1;
}

export function canNumberEnd(state: number): boolean {
  return state === State.zero || state === State.int || state === State.fraction || state === State.exponentDigits;
}

/** Stops at a byte that cannot occur unescaped in a string, or at the end of the chunk. */
export function stringEnd(chunk: Buffer, from: number): number {
  const length = chunk.length;
  let i = from;
  // The loop would otherwise take most of the time.
  for (const last = length - 4; i <= last; i += 4) {
    const found =
      (special[chunk[i] as number] as number) |
      (special[chunk[i + 1] as number] as number) |
      (special[chunk[i + 2] as number] as number) |
      (special[chunk[i + 3] as number] as number);
    if (found !== 0) break;
  }
  while (i < length && special[chunk[i] as number] === 0) i++;
  return i;
}

/** Returns -1 if the literal is invalid or incomplete in this chunk. */
function literalEnd(chunk: Buffer, at: number): number {
  const literal = literalsByFirst[chunk[at] as number];
  if (!literal || at + literal.length > chunk.length) return -1;
  for (let i = 1; i < literal.length; i++) if (chunk[at + i] !== literal[i]) return -1;
  return at + literal.length;
}

function isEscapedUnit(chunk: Buffer, at: number): boolean {
  if (chunk[at] !== 0x75 || at + 5 > chunk.length) return false;
  for (let i = 1; i <= 4; i++) if (!isHex(chunk[at + i] as number)) return false;
  return true;
}

export function isHex(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
}

export class Utf8Check {
  #carry: Buffer = Buffer.alloc(0);

  /** Whether the text so far ends within a character. */
  get isCut(): boolean {
    return this.#carry.length > 0;
  }

  /** Returns false if the text is not UTF-8. */
  write(chunk: Buffer): boolean {
    const text = this.#carry.length > 0 ? Buffer.concat([this.#carry, chunk]) : chunk;
    const cut = text.length - incompleteTail(text);
    if (!isUtf8(cut === text.length ? text : text.subarray(0, cut))) return false;
    this.#carry = cut === text.length ? Buffer.alloc(0) : Buffer.from(text.subarray(cut));
    return true;
  }
}

/** The length of an incomplete UTF-8 sequence at the end: 0 to 3. */
function incompleteTail(text: Buffer): number {
  for (let back = 1; back <= 3 && back <= text.length; back++) {
    const byte = text[text.length - back] as number;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? back : 0;
    }
  }
  return 0;
}

function createSteps(): Uint8Array {
  const table = new Uint8Array(32 * 256).fill(Action.leave);
  const set = (states: readonly number[], bytes: string, step: number): void => {
    for (const state of states) for (const byte of Buffer.from(bytes)) table[(state << 8) | byte] = step;
  };
  const { value, valueOrEnd, keyOrEnd, key, colon, afterValue, string, escape: escaped } = State;
  const { minus, zero, int, dot, fraction, exponent, exponentSign, exponentDigits } = State;
  for (const state of [value, valueOrEnd, keyOrEnd, key, colon, afterValue]) set([state], ' \n\r\t', state);
  const values = [value, valueOrEnd];
  set(values, '"', string);
  set(values, '-', minus);
  set(values, '0', zero);
  set(values, '123456789', int);
  set(values, 'tfn', Action.beginLiteral);
  set(values, '{', Action.openObject);
  set(values, '[', Action.openArray);
  set([keyOrEnd, key], '"', Action.beginKey);
  set([colon], ':', value);
  set([afterValue], ',', Action.comma);
  set([keyOrEnd, afterValue], '}', Action.closeObject);
  set([valueOrEnd, afterValue], ']', Action.closeArray);
  set([escaped], '"\\/bfnrt', string);
  set([minus], '0', zero);
  set([minus], '123456789', int);
  set([int], '0123456789', int);
  set([zero, int], '.', dot);
  set([zero, int, fraction], 'eE', exponent);
  set([dot, fraction], '0123456789', fraction);
  set([exponent], '+-', exponentSign);
  set([exponent, exponentSign, exponentDigits], '0123456789', exponentDigits);
  set([zero, int, fraction, exponentDigits], ' \n\r\t,]}', Action.endNumber);
  return table;
}
