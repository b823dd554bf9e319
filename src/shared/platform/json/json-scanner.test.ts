import { isUtf8 } from 'node:buffer';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { anyText, chunkSizes, cut, wholeText } from '../../../../testkit/json-texts.ts';
import { type JsonKind, JsonScanner, JsonSyntaxError } from './json-scanner.ts';

interface Reported {
  readonly path: readonly (string | number)[];
  readonly kind: JsonKind;
  readonly start: number;
  readonly end: number;
}

type Path = Reported['path'];

interface ScanOptions {
  readonly reportDepth: number;
  readonly maxDepth?: number;
  readonly skips?: (path: Path) => boolean;
}

/** Returns null if the text was rejected. */
function scan(chunks: readonly Buffer[], options: ScanOptions): Reported[] | null {
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

/** The depth of a valid text; 0 without a container. Counted in the text, because a parser drops repeated members. */
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

/** Which values to skip, by their paths. */
type Skips = (path: Path) => boolean;
const skipping = fc.tuple(fc.nat({ max: 5 }), fc.integer({ min: 1, max: 4 })).map(
  ([salt, share]): Skips =>
    (path) =>
      (JSON.stringify(path).length + salt) % share === 0,
);

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
      fc.property(anyText, chunkSizes, fc.integer({ min: -1, max: 4 }), (text, lengths, reportDepth) => {
        expect(scan(cut(text, lengths), { reportDepth })).toEqual(scan([text], { reportDepth }));
      }),
      runs,
    );
  });

  test('reports what a plain reader reads, but nothing in the values that it is to skip', () => {
    fc.assert(
      fc.property(
        wholeText,
        chunkSizes,
        fc.integer({ min: -1, max: 5 }),
        skipping,
        (text, lengths, reportDepth, skips) => {
          const expected = readPlainly(text).filter(({ path }) => {
            const outer = path.map((_, depth) => path.slice(0, depth));
            return path.length <= reportDepth && !outer.some(skips);
          });
          expect(scan(cut(text, lengths), { reportDepth, skips })).toEqual(expected);
        },
      ),
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
    const verdict = (chunks: readonly Buffer[], reportDepth: number, maxDepth: number, skips?: Skips): string => {
      const scanner = new JsonScanner({ reportDepth, maxDepth, onValue: () => {}, ...(skips && { skips }) });
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
      fc.property(anyText, chunkSizes, depth, maxDepth, skipping, (text, lengths, reportDepth, deepest, skips) => {
        const nested = Buffer.concat([Buffer.from('[[{"a":'), text, Buffer.from('}]]')]);
        for (const each of [text, nested]) {
          const expected = verdict(cut(each, lengths), 20_000, deepest);
          expect(verdict(cut(each, lengths), reportDepth, deepest)).toBe(expected);
          expect(verdict(cut(each, lengths), 20_000, deepest, skips)).toBe(expected);
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

/** All values of a valid text, in the order of their ends. Decodes each name by itself. */
function readPlainly(text: Buffer): Reported[] {
  // In Latin-1, a character is a byte.
  const tokens = [...text.toString('latin1').matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^ \t\r\n"{}[\]:,]+/g)];
  const reported: Reported[] = [];
  let at = 0;
  const peek = (): string => (tokens[at] as RegExpExecArray)[0];
  const read = (path: Path): void => {
    const { index: start } = tokens[at] as RegExpExecArray;
    const first = peek();
    at++;
    if (first === '{' || first === '[') {
      for (let count = 0; peek() !== '}' && peek() !== ']'; count++) {
        if (count > 0) at++;
        if (first === '{') {
          const name = JSON.parse(Buffer.from(peek(), 'latin1').toString('utf8')) as string;
          at += 2;
          read([...path, name]);
        } else read([...path, count]);
      }
      at++;
    }
    const { index: last, 0: end } = tokens[at - 1] as RegExpExecArray;
    const kind = first === '{' ? 'object' : first === '[' ? 'array' : kindOf(JSON.parse(first.replace(/^".*/s, '""')));
    reported.push({ path, kind, start, end: last + end.length });
  };
  read([]);
  return reported;
}
