import { PayloadTooLargeError } from '../errors/errors.ts';
import { nextTurn, scanInTurns, slicesOf, turnBytes } from '../turns/turns.ts';
import { JsonScanner, type Span } from './json-scanner.ts';

/** Nesting that a control body may have; deployments and events have their own, wider limit. */
const maxDepth = 500;

/**
 * Values that a control body may have: 64 MiB of `{},{},…` come as 64 KiB of gzip and take 2 GB and 9 s to parse.
 * A million of them take about 100 MB.
 */
const maxValues = 1_000_000;

/**
 * What JSON.parse makes of the text, no more than about 1 MiB of it in one turn of the event loop unless a single value below the
 * second level is larger. Throws JsonSyntaxError and PayloadTooLargeError.
 */
export async function parseInTurns(text: Buffer): Promise<unknown> {
  await assertFewValues(text);
  const outer = await scanOuter(text);
  return build(text, outer, 2);
}

/** The outermost value's place and kind, and where its members or elements end. */
interface Outer extends Span {
  readonly kind: string;
  readonly ends: readonly number[];
}

async function scanOuter(text: Buffer): Promise<Outer> {
  const ends: number[] = [];
  let root = { kind: 'literal', start: 0, end: text.length };
  const isLarge = text.length > turnBytes;
  const scanner = new JsonScanner({
    // Of what is parsed in one turn nothing but its being JSON matters.
    reportDepth: isLarge ? 1 : -1,
    onValue: (path, kind, start, end) => {
      if (path.length === 1) ends.push(end);
      else root = { kind, start, end };
    },
    maxDepth,
  });
  await scanInTurns(scanner, text);
  scanner.end();
  return { ...root, ends };
}

async function build(text: Buffer, outer: Outer, levels: number): Promise<unknown> {
  const isContainer = outer.kind === 'object' || outer.kind === 'array';
  if (outer.end - outer.start <= turnBytes || !isContainer || levels === 0) {
    return JSON.parse(text.toString('utf8', outer.start, outer.end)) as unknown;
  }
  const result: Record<string, unknown> | unknown[] = outer.kind === 'object' ? {} : [];
  const [open, close] = outer.kind === 'object' ? '{}' : '[]';
  let from = outer.start + 1;
  for (let at = 0; at < outer.ends.length; ) {
    // As many members as fit into a turn, or one.
    let last = at;
    while (last + 1 < outer.ends.length && (outer.ends[last + 1] as number) - from <= turnBytes) last += 1;
    const end = outer.ends[last] as number;
    if (end - from > turnBytes) {
      const [name, value] = await buildMember(text, { from, end, isObject: outer.kind === 'object' }, levels);
      add(result, name, value);
    } else {
      const part = JSON.parse(`${open}${text.toString('utf8', from, end)}${close}`) as object;
      for (const [name, value] of Object.entries(part)) add(result, name, value);
    }
    await nextTurn();
    at = last + 1;
    if (at < outer.ends.length) from = text.indexOf(',', end) + 1;
  }
  return result;
}

/** One member or element that is larger than a turn may take, name and white space before it included. */
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
  // As JSON.parse does: `__proto__` is a name like any other.
  else Object.defineProperty(result, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Counts what values begin with or are parted by; inside of strings too, which only errs on the safe side. */
async function assertFewValues(text: Buffer): Promise<void> {
  if (text.length <= maxValues) return;
  let values = 1;
  for (const slice of slicesOf(text)) {
    for (const mark of [0x2c, 0x5b, 0x7b]) {
      for (let at = slice.indexOf(mark); at >= 0; at = slice.indexOf(mark, at + 1)) {
        if (++values > maxValues)
          throw new PayloadTooLargeError(`The body has more than the ${maxValues} values that this call accepts`);
      }
    }
    await nextTurn();
  }
}
