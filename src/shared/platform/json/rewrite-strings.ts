/** The value of the JSON string at [start, end), quotes included, as Go reads it: a lone surrogate is U+FFFD. */
export function decodeJsonString(text: Buffer, start: number, end: number): string {
  const inner = text.toString('utf8', start + 1, end - 1);
  return inner.includes('\\') ? (JSON.parse(`"${inner}"`) as string).toWellFormed() : inner;
}

/** The JSON string, quotes included, as Go's encoding/json spells it: like JSON.stringify, HTML characters escaped. */
export function encodeJsonString(value: string): string {
  return JSON.stringify(value.toWellFormed()).replace(/[<>&\u2028\u2029]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Where strings begin in a text, to be written anew: eight bytes each. In any order. */
export class StringPlaces {
  #starts = new Float64Array(1024);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(start: number): void {
    if (this.#count === this.#starts.length) {
      const longer = new Float64Array(this.#starts.length * 2);
      longer.set(this.#starts);
      this.#starts = longer;
    }
    this.#starts[this.#count++] = start;
  }

  /** In the order of the text. */
  sorted(): Float64Array {
    return this.#starts.subarray(0, this.#count).sort();
  }
}

/**
 * The JSON text with the strings that begin at `starts` (byte offsets of their quotes, ascending) replaced by what `rule` makes of
 * their values; every other byte stays. Memory does not grow with the text, only with the longest such string.
 */
export async function* rewriteStrings(
  text: AsyncIterable<Buffer>,
  starts: Float64Array,
  rule: (value: string, start: number) => string,
): AsyncGenerator<Buffer> {
  const string = new OpenString();
  let offset = 0;
  let next = 0;
  for await (const chunk of text) {
    const pieces: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (string.isOpen) {
        at = string.take(chunk, at);
        if (string.isOpen) break;
        pieces.push(Buffer.from(encodeJsonString(rule(string.value(), starts[next] as number))));
        next++;
      } else {
        const start = next < starts.length ? (starts[next] as number) - offset : chunk.length;
        const end = Math.min(start, chunk.length);
        if (end > at) pieces.push(chunk.subarray(at, end));
        at = end;
        if (start < chunk.length) string.open();
      }
    }
    offset += chunk.length;
    if (pieces.length > 0) yield pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  }
}

/** A string whose end may come in a later chunk. */
class OpenString {
  isOpen = false;
  #parts: Buffer[] = [];
  #seen = 0;
  #isEscape = false;

  open(): void {
    this.isOpen = true;
    this.#parts = [];
    this.#seen = 0;
    this.#isEscape = false;
  }

  /** Takes the string's bytes from `at` on, its opening quote first. Returns where they end in the chunk. */
  take(chunk: Buffer, at: number): number {
    let end = at;
    while (end < chunk.length && this.isOpen) {
      const byte = chunk[end++];
      if (this.#isEscape) this.#isEscape = false;
      else if (byte === 0x5c) this.#isEscape = true;
      else if (byte === 0x22 && this.#seen + (end - at) > 1) this.isOpen = false;
    }
    this.#seen += end - at;
    // A copy: the next chunk may take the place of this one.
    this.#parts.push(Buffer.from(chunk.subarray(at, end)));
    return end;
  }

  value(): string {
    return decodeJsonString(Buffer.concat(this.#parts), 0, this.#seen);
  }
}
