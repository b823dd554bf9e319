/** A string's new value; the same value leaves it alone. */
export type StringRule = (value: string) => string;

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

/**
 * Changes strings inside a JSON text and keeps every other byte. Feed it the places that a JsonScanner reports.
 * Places alone are kept, and `apply` runs the rules again: new values held in the meantime would weigh as much as the
 * text itself when most strings change.
 */
export class StringRewriter {
  readonly #text: Buffer;
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #rules: StringRule[] = [];
  #newLength: number;
  #isSorted = true;

  constructor(text: Buffer) {
    this.#text = text;
    this.#newLength = text.length;
  }

  /** Puts the string at [start, end), quotes included, under `rule`. The order of calls does not matter. */
  add(start: number, end: number, rule: StringRule): void {
    const written = this.#rewrite(start, end, rule);
    if (written === null) return;
    this.#newLength += Buffer.byteLength(written) - (end - start);
    if (start < (this.#starts.at(-1) ?? 0)) this.#isSorted = false;
    this.#starts.push(start);
    this.#ends.push(end);
    this.#rules.push(rule);
  }

  /** The text with the new strings; the very same Buffer when none changed. */
  apply(): Buffer {
    if (this.#starts.length === 0) return this.#text;
    const result = Buffer.allocUnsafe(this.#newLength);
    let written = 0;
    let from = 0;
    for (const i of this.#order()) {
      const start = this.#starts[i] as number;
      const end = this.#ends[i] as number;
      const rule = this.#rules[i] as StringRule;
      written += this.#text.copy(result, written, from, start);
      written += result.write(this.#rewrite(start, end, rule) ?? '', written);
      from = end;
    }
    this.#text.copy(result, written, from);
    return result;
  }

  #order(): Iterable<number> {
    const order = this.#starts.keys();
    if (this.#isSorted) return order;
    return [...order].sort((a, b) => (this.#starts[a] as number) - (this.#starts[b] as number));
  }

  #rewrite(start: number, end: number, rule: StringRule): string | null {
    const value = decodeJsonString(this.#text, start, end);
    const newValue = rule(value);
    return newValue === value ? null : encodeJsonString(newValue);
  }
}
