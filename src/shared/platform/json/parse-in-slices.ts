import { PayloadTooLargeError } from '../errors/errors.ts';
import { denseSliceBytes, nextSlice, scanInSlices, slicesOf, timeSliceBytes } from '../slices/slices.ts';
import { JsonScanner, type Span } from './json-scanner.ts';

/** Deployments and events have their own, higher limit. */
const maxDepth = 500;

/** 64 MiB of `{},{},…` compress to 64 KiB of gzip, and parsing them takes 2 GB and 9 s; a million values take about 100 MB. */
const maxValues = 1_000_000;

/**
 * Parses at most about 1 MiB per event loop tick, unless a single value below the second level is larger. Throws JsonSyntaxError and
 * PayloadTooLargeError.
 */
export async function parseInSlices(text: Buffer): Promise<unknown> {
  await assertValueCount(text);
  const outer = await scanOuter(text);
  return build(text, outer, 2);
}

/** `ends` belong to the members or elements. */
interface Outer extends Span {
  readonly kind: string;
  readonly ends: readonly number[];
}

async function scanOuter(text: Buffer): Promise<Outer> {
  const ends: number[] = [];
  let root = { kind: 'literal', start: 0, end: text.length };
  const isLarge = text.length > timeSliceBytes;
  const scanner = new JsonScanner({
    // A text that is parsed in one tick is only validated.
    reportDepth: isLarge ? 1 : -1,
    onValue: (path, kind, start, end) => {
      if (path.length === 1) ends.push(end);
      else root = { kind, start, end };
    },
    maxDepth,
  });
  await scanInSlices(scanner, text, isLarge ? denseSliceBytes : timeSliceBytes);
  scanner.end();
  return { ...root, ends };
}

async function build(text: Buffer, outer: Outer, levels: number): Promise<unknown> {
  const isContainer = outer.kind === 'object' || outer.kind === 'array';
  if (outer.end - outer.start <= timeSliceBytes || !isContainer || levels === 0) {
    return JSON.parse(text.toString('utf8', outer.start, outer.end)) as unknown;
  }
  const result: Record<string, unknown> | unknown[] = outer.kind === 'object' ? {} : [];
  const [open, close] = outer.kind === 'object' ? '{}' : '[]';
  let from = outer.start + 1;
  for (let at = 0; at < outer.ends.length; ) {
    // Takes as many members as fit into a tick, but at least one.
    let last = at;
    while (last + 1 < outer.ends.length && (outer.ends[last + 1] as number) - from <= timeSliceBytes) last += 1;
    const end = outer.ends[last] as number;
    if (end - from > timeSliceBytes) {
      const [name, value] = await buildMember(text, { from, end, isObject: outer.kind === 'object' }, levels);
      add(result, name, value);
    } else {
      const part = JSON.parse(`${open}${text.toString('utf8', from, end)}${close}`) as object;
      for (const [name, value] of Object.entries(part)) add(result, name, value);
    }
    await nextSlice();
    at = last + 1;
    if (at < outer.ends.length) from = text.indexOf(',', end) + 1;
  }
  return result;
}

/** A tick is too short for this member or element; `from` includes its name and leading white space. */
async function buildMember(
  text: Buffer,
  { from, end, isObject }: { from: number; end: number; isObject: boolean },
  levels: number,
): Promise<[string, unknown]> {
  let name = '';
  let start = from;
  if (isObject) {
    const quote = text.indexOf('"', from);
    let close = quote + 1;
    while (text[close] !== 0x22) close += text[close] === 0x5c ? 2 : 1;
    name = JSON.parse(text.toString('utf8', quote, close + 1)) as string;
    start = text.indexOf(':', close) + 1;
  }
  const member = text.subarray(start, end);
  return [name, await build(member, await scanOuter(member), levels - 1)];
}

function add(result: Record<string, unknown> | unknown[], name: string, value: unknown): void {
  if (Array.isArray(result)) result.push(value);
  // `__proto__` is an ordinary name, as in JSON.parse.
  else Object.defineProperty(result, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Counts commas and opening brackets, even inside strings, which errs on the safe side. */
async function assertValueCount(text: Buffer): Promise<void> {
  if (text.length <= maxValues) return;
  let values = 1;
  for (const slice of slicesOf(text)) {
    for (const mark of [0x2c, 0x5b, 0x7b]) {
      for (let at = slice.indexOf(mark); at >= 0; at = slice.indexOf(mark, at + 1)) {
        if (++values > maxValues)
          throw new PayloadTooLargeError(`The body has more than the ${maxValues} values that this call accepts`);
      }
    }
    await nextSlice();
  }
}
