import { joined } from '../bytes/buffers.ts';
import { decodeJsonString } from './json-strings.ts';

/** Like Go's encoding/json, i.e. JSON.stringify plus escaped HTML characters. */
export function encodeJsonString(value: string): string {
  return JSON.stringify(value.toWellFormed()).replace(/[<>&\u2028\u2029]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Takes start offsets in any order; eight bytes each. */
export class StringSpans {
  #starts = new Float64Array(1024);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(start: number): void {
    if (this.#count === this.#starts.length) {
      const larger = new Float64Array(this.#starts.length * 2);
      larger.set(this.#starts);
      this.#starts = larger;
    }
    this.#starts[this.#count++] = start;
  }

  sorted(): Float64Array {
    return this.#starts.subarray(0, this.#count).sort();
  }
}

/**
 * `starts` are the ascending byte offsets of the opening quotes. All other bytes stay the same. Memory use depends only on the longest
 * replaced string.
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
    const output: Buffer[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (string.isOpen) {
        at = string.read(chunk, at);
        if (string.isOpen) break;
        output.push(Buffer.from(encodeJsonString(rule(string.value(), starts[next] as number))));
        next++;
      } else {
        const start = next < starts.length ? (starts[next] as number) - offset : chunk.length;
        const end = Math.min(start, chunk.length);
        if (end > at) output.push(chunk.subarray(at, end));
        at = end;
        if (start < chunk.length) string.open();
      }
    }
    offset += chunk.length;
    if (output.length > 0) yield joined(output);
  }
}

/** The string may continue in a later chunk. */
class OpenString {
  isOpen = false;
  #parts: Buffer[] = [];
  #length = 0;
  #isEscape = false;

  open(): void {
    this.isOpen = true;
    this.#parts = [];
    this.#length = 0;
    this.#isEscape = false;
  }

  /** Reads from the opening quote. Returns the end of the string's bytes in the chunk. */
  read(chunk: Buffer, at: number): number {
    let end = at;
    while (end < chunk.length && this.isOpen) {
      const byte = chunk[end++];
      if (this.#isEscape) this.#isEscape = false;
      else if (byte === 0x5c) this.#isEscape = true;
      else if (byte === 0x22 && this.#length + (end - at) > 1) this.isOpen = false;
    }
    this.#length += end - at;
    // The next chunk may overwrite this one.
    this.#parts.push(Buffer.from(chunk.subarray(at, end)));
    return end;
  }

  value(): string {
    return decodeJsonString(Buffer.concat(this.#parts), 0, this.#length);
  }
}
