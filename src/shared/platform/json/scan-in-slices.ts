import { denseSliceBytes, nextSlice, scanInSlices, timeSliceBytes } from '../slices/slices.ts';
import { JsonScanner } from './json-scanner.ts';
import type { JsonSpan } from './json-text.ts';
import { decodeJsonString } from './rewrite-strings.ts';

const backslash = 0x5c;
const unicode = 0x75;
const surrogatePair = /^\\ud[89ab]..\\ud[c-f]/i;

/**
 * Like `scanJson`, but scans at most about `sliceBytes` per event loop tick: `denseSliceBytes` where values to report may be as dense as
 * possible. Throws JsonSyntaxError.
 */
export async function scanJsonInSlices(
  text: Buffer,
  reportDepth: number,
  onValue: (path: readonly (string | number)[], span: JsonSpan) => void,
  sliceBytes = timeSliceBytes,
): Promise<void> {
  const scanner = new JsonScanner({
    reportDepth,
    onValue: (path, kind, start, end) => onValue(path, { kind, start, end }),
  });
  await scanInSlices(scanner, text, sliceBytes);
  scanner.end();
}

/** Like `scanMembers`, for objects with any number of members. Throws JsonSyntaxError. */
export async function scanMembersInSlices(text: Buffer): Promise<Map<string, JsonSpan> | null> {
  const members = new Map<string, JsonSpan>();
  let isObject = false;
  const onValue = (path: readonly (string | number)[], span: JsonSpan): void => {
    if (path.length === 1) members.set(String(path[0]), span);
    else isObject = span.kind === 'object';
  };
  await scanJsonInSlices(text, 1, onValue, denseSliceBytes);
  return isObject ? members : null;
}

/** Like `decodeJsonString`, but returns UTF-8 and decodes at most about 1 MiB per event loop tick. */
export async function decodeStringInSlices(text: Buffer, start: number, end: number): Promise<Buffer> {
  if (end - start <= timeSliceBytes) return Buffer.from(decodeJsonString(text, start, end));
  const inner = text.subarray(start + 1, end - 1);
  const parts: Buffer[] = [];
  for (let from = 0; from < inner.length; ) {
    const to = chunkEnd(inner, from, Math.min(from + timeSliceBytes, inner.length));
    parts.push(Buffer.from(decodeJsonString(inner, from - 1, to + 1)));
    from = to;
    await nextSlice();
  }
  return Buffer.concat(parts);
}

/** Returns the last offset up to `to` that splits no escape, surrogate pair or character. */
function chunkEnd(inner: Buffer, from: number, to: number): number {
  if (to === inner.length) return to;
  const chunk = inner.subarray(0, to);
  for (let at = chunk.indexOf(backslash, from); at >= 0; ) {
    const next = at + escapeBytes(inner, at);
    if (next > to) return at;
    at = chunk.indexOf(backslash, next);
  }
  let end = to;
  while (((inner[end] as number) & 0xc0) === 0x80) end -= 1;
  return end;
}

function escapeBytes(inner: Buffer, at: number): number {
  if (inner[at + 1] !== unicode) return 2;
  return surrogatePair.test(inner.toString('latin1', at, at + 12)) ? 12 : 6;
}
