import { isUtf8 } from 'node:buffer';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyCodePoint } from '../../../../testkit/any-code-point.ts';
import { type JsonKind, JsonScanner, JsonSyntaxError } from './json-scanner.ts';

interface Reported {
  readonly path: readonly (string | number)[];
  readonly kind: JsonKind;
  readonly start: number;
  readonly end: number;
}

/** Feeds the text in chunks. Returns the reported values, or null if the text was rejected. */
function scan(chunks: readonly Buffer[], options: { reportDepth: number; maxDepth?: number }): Reported[] | null {
  const reported: Reported[] = [];
  const scanner = new JsonScanner({
    ...options,
    onValue: (path, kind, start, end) => reported.push({ path: [...path], kind, start, end }),
  });
  try {
    for (const chunk of chunks) scanner.write(chunk);
    expect(scanner.end()).toBe(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    return reported;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return null;
    throw error;
  }
}

function cut(text: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  let from = 0;
  for (const size of sizes) {
    if (from >= text.length) break;
    chunks.push(text.subarray(from, from + size));
    from += size;
  }
  if (from < text.length) chunks.push(text.subarray(from));
  return chunks;
}

/** Depth of a valid text; 0 without a container. Counted in the text, because a parser drops repeated members. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const mark of text.replace(/"(?:[^"\\]|\\.)*"/g, '')) {
    if (mark === '[' || mark === '{') deepest = Math.max(deepest, ++depth);
    else if (mark === ']' || mark === '}') depth--;
  }
  return deepest;
}

/** Whether RFC 8259 accepts the text, according to a known-good parser, on UTF-8 without a BOM. */
function referenceAccepts(text: Buffer, maxDepth: number): boolean {
  if (!isUtf8(text) || text.subarray(0, 3).equals(Buffer.from('efbbbf', 'hex'))) return false;
  try {
    JSON.parse(text.toString('utf8'));
    return depthOf(text.toString('utf8')) <= maxDepth;
  } catch {
    return false;
  }
}

const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
const number = fc.oneof(
  fc.integer().map(String),
  fc.stringMatching(/^-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?$/),
);
const escapeSequence = fc.stringMatching(/^\\(["\\/bfnrt]|u[0-9a-fA-F]{4})$/);
const plain = fc
  .string({ unit: anyCodePoint, maxLength: 6 })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that JSON must escape.
  .map((text) => text.toWellFormed().replace(/["\\\u0000-\u001f]/g, ''));
const string = fc.array(fc.oneof(plain, escapeSequence), { maxLength: 4 }).map((parts) => `"${parts.join('')}"`);
const oddKey = fc.constantFrom('"__proto__"', '""', '"constructor"', '"\\u0000"', '"0"');

/** JSON texts with white space, unusual numbers, escapes and repeated names, which JSON.stringify would not produce. */
const { value: jsonText } = fc.letrec<{ value: string }>((tie) => {
  const padded = fc.tuple(space, tie('value'), space).map((parts) => parts.join(''));
  const key = fc.tuple(space, fc.oneof({ weight: 5, arbitrary: string }, oddKey), space).map((parts) => parts.join(''));
  return {
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom('true', 'false', 'null', '[]', '{}', '[ ]', '{\n}', '""', '0', '-0'),
      number,
      string,
      fc.array(padded, { maxLength: 4 }).map((parts) => `[${parts.join(',')}]`),
      fc
        .array(fc.tuple(key, padded), { maxLength: 4 })
        .map((members) => `{${members.map(([name, value]) => `${name}:${value}`).join(',')}}`),
    ),
  };
});
const wholeText = fc.tuple(space, jsonText, space).map((parts) => Buffer.from(parts.join('')));

/** One change to a text: a byte replaced, removed or inserted, a range repeated, or the end cut off. */
const mutation = fc.record({
  kind: fc.constantFrom('set', 'drop', 'insert', 'repeat', 'cut', 'swap'),
  at: fc.nat(),
  length: fc.integer({ min: 1, max: 4 }),
  byte: fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(...Buffer.from('{}[]",:\\ \n0-+.eEtfnu/'))),
});

function mutate(
  text: Buffer,
  { kind, at: anywhere, length, byte }: { kind: string; at: number; length: number; byte: number },
): Buffer {
  const at = anywhere % (text.length + 1);
  const [before, stretch, after] = [text.subarray(0, at), text.subarray(at, at + length), text.subarray(at + length)];
  switch (kind) {
    case 'set':
      return Buffer.concat([before, Buffer.from([byte]), text.subarray(at + 1)]);
    case 'drop':
      return Buffer.concat([before, after]);
    case 'insert':
      return Buffer.concat([before, Buffer.from([byte]), text.subarray(at)]);
    case 'repeat':
      return Buffer.concat([before, stretch, stretch, after]);
    case 'swap':
      return Buffer.concat([before, Buffer.from(stretch).reverse(), after]);
    default:
      return before;
  }
}

const anyText = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(wholeText, fc.array(mutation, { maxLength: 3 }))
      .map(([text, changes]) => changes.reduce(mutate, text)),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
);
const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 });
const runs = { numRuns: 2_000 };

describe('the JSON scanner', () => {
  test('accepts what a strict parser accepts, and nothing else', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 0, max: 7 }), (text, maxDepth) => {
        expect(scan([text], { reportDepth: 1, maxDepth }) !== null).toBe(referenceAccepts(text, maxDepth));
      }),
      runs,
    );
  });

  test('reports the same values however the text is chunked', () => {
    fc.assert(
      fc.property(anyText, sizes, fc.integer({ min: -1, max: 4 }), (text, lengths, reportDepth) => {
        expect(scan(cut(text, lengths), { reportDepth })).toEqual(scan([text], { reportDepth }));
      }),
      runs,
    );
  });

  test('reports each value with its text and path', () => {
    fc.assert(
      fc.property(wholeText, fc.nat({ max: 4 }), (text, reportDepth) => {
        const reported = scan([text], { reportDepth }) ?? [];
        const whole: unknown = JSON.parse(text.toString('utf8'));
        const comparable = !hasRepeats(reported) && !oneEscapedName.test(text.toString('utf8'));
        expect(reported.at(-1)?.path).toEqual([]);
        for (const { path, kind, start, end } of reported) {
          expect(path.length).toBeLessThanOrEqual(reportDepth);
          const slice = text.toString('utf8', start, end);
          expect(slice).toBe(slice.trim());
          const value: unknown = JSON.parse(slice);
          expect(kindOf(value)).toBe(kind);
          // For repeated names JSON.parse keeps the last one, so the values differ.
          const last = reported.filter((other) => samePath(other.path, path)).at(-1);
          if (last?.start === start && comparable) expect(valueAt(whole, path)).toEqual(value);
        }
        expect(reported.length).toBeGreaterThanOrEqual(1);
        if (reportDepth >= 1 && comparable) {
          const members = reported.filter(({ path }) => path.length === 1);
          expect(members).toHaveLength(typeof whole === 'object' && whole !== null ? Object.keys(whole).length : 0);
        }
      }),
      runs,
    );
  });

  test('reports the byte at which the error became certain', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const scanner = new JsonScanner({ reportDepth: 0, onValue: () => {} });
        try {
          scanner.write(text);
          scanner.end();
        } catch (error) {
          const { offset } = error as JsonSyntaxError;
          expect(offset).toBeGreaterThanOrEqual(0);
          expect(offset).toBeLessThanOrEqual(text.length);
          // UTF-8 is checked first, one chunk at a time.
          if (!isUtf8(text)) return;
          const feed = (bytes: Buffer): void => new JsonScanner({ reportDepth: 0, onValue: () => {} }).write(bytes);
          expect(() => feed(text.subarray(0, offset))).not.toThrow();
          if (offset < text.length)
            expect(() => feed(Buffer.from(text.toString('latin1', 0, offset + 1), 'latin1'))).toThrow();
        }
      }),
      { numRuns: 500 },
    );
  });

  test('gives the same result for a text whether it reports all of its values or skips them', () => {
    const verdict = (chunks: readonly Buffer[], reportDepth: number, maxDepth: number): string => {
      const scanner = new JsonScanner({ reportDepth, maxDepth, onValue: () => {} });
      try {
        for (const chunk of chunks) scanner.write(chunk);
        return `${scanner.end()} bytes`;
      } catch (error) {
        return (error as JsonSyntaxError).message;
      }
    };
    const depth = fc.integer({ min: -1, max: 3 });
    const maxDepth = fc.oneof(fc.integer({ min: 0, max: 7 }), fc.constant(10_000));
    fc.assert(
      fc.property(anyText, sizes, depth, maxDepth, (text, lengths, reportDepth, deepest) => {
        const nested = Buffer.concat([Buffer.from('[[{"a":'), text, Buffer.from('}]]')]);
        for (const each of [text, nested]) {
          expect(verdict(cut(each, lengths), reportDepth, deepest)).toBe(verdict(cut(each, lengths), 20_000, deepest));
        }
      }),
      runs,
    );
    // Deeper than what the scanner reserves for open containers at first.
    const deep = Buffer.from(`${'[{"a":'.repeat(300)}"\\u00e9 ü"${'}]'.repeat(300)}`);
    expect(verdict([deep], 0, 10_000)).toBe(verdict([deep], 20_000, 10_000));
  });

  test('stops exactly at its maximum depth', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const nested = (levels: number) => Buffer.from(`${open.repeat(levels)}0${close.repeat(levels)}`);
      expect(scan([nested(10_000)], { reportDepth: 0 })).not.toBeNull();
      expect(scan([nested(10_001)], { reportDepth: 0 })).toBeNull();
      expect(scan([nested(3)], { reportDepth: 0, maxDepth: 3 })).not.toBeNull();
      expect(scan([nested(4)], { reportDepth: 0, maxDepth: 3 })).toBeNull();
    }
  });
});

function kindOf(value: unknown): JsonKind {
  if (Array.isArray(value)) return 'array';
  if (value === null || typeof value === 'boolean') return 'literal';
  return typeof value as 'object' | 'string' | 'number';
}

function samePath(one: readonly (string | number)[], other: readonly (string | number)[]): boolean {
  return one.length === other.length && one.every((part, index) => part === other[index]);
}

function hasRepeats(reported: readonly Reported[]): boolean {
  return new Set(reported.map(({ path }) => JSON.stringify(path))).size < reported.length;
}

/** V8 in Node 24.21 sometimes parses a name of one escaped character as a backslash, so these cannot be compared. */
const oneEscapedName = /"\\(?:[^u]|u[0-9a-fA-F]{4})"\s*:/;

function valueAt(whole: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, part) => Object.getOwnPropertyDescriptor(at, part)?.value as unknown, whole);
}
