import { denseSliceBytes, scanInSlices, timeSliceBytes } from '../slices/slices.ts';
import { type JsonKind, JsonScanner, type Span } from './json-scanner.ts';

export interface JsonSpan extends Span {
  readonly kind: JsonKind;
}

/** Reports every value down to `reportDepth`; see JsonScanner. Throws JsonSyntaxError. */
export function scanJson(
  text: Buffer,
  reportDepth: number,
  onValue: (path: readonly (string | number)[], span: JsonSpan) => void,
): void {
  const scanner = new JsonScanner({
    reportDepth,
    onValue: (path, kind, start, end) => onValue(path, { kind, start, end }),
  });
  scanner.write(text);
  scanner.end();
}

/** The last of repeated members wins. Returns null if the value is not an object. Throws JsonSyntaxError. */
export function scanMembers(text: Buffer): Map<string, JsonSpan> | null {
  const members = new Map<string, JsonSpan>();
  let isObject = false;
  scanJson(text, 1, (path, span) => {
    if (path.length === 1) members.set(String(path[0]), span);
    else isObject = span.kind === 'object';
  });
  return isObject ? members : null;
}

/** Returns null if the value is not an array. Throws JsonSyntaxError. */
export function scanElements(text: Buffer): JsonSpan[] | null {
  const elements: JsonSpan[] = [];
  let isArray = false;
  scanJson(text, 1, (path, span) => {
    if (path.length === 1) elements.push(span);
    else isArray = span.kind === 'array';
  });
  return isArray ? elements : null;
}

/** Scans at most about `sliceBytes` per event loop tick. Pass `denseSliceBytes` if the values to report may be very dense. */
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

/** For objects with any number of members. */
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

/** Shares memory with `text`. */
export function sliceOf(text: Buffer, span: Span): Buffer {
  return text.subarray(span.start, span.end);
}
