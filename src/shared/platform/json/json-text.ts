import { type JsonKind, JsonScanner, type Span } from './json-scanner.ts';

/** A value's place in a text, and what it is. */
export interface JsonSpan extends Span {
  readonly kind: JsonKind;
}

/**
 * Checks that `text` is one JSON value in UTF-8 and reports every value down to `reportDepth`
 * (see JsonScanner). Throws JsonSyntaxError.
 */
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

/**
 * Members of the object that `text` holds, by name, as spans into `text`; of a repeated name the last counts.
 * Returns null when the value is not an object. Throws JsonSyntaxError.
 */
export function scanMembers(text: Buffer): Map<string, JsonSpan> | null {
  const members = new Map<string, JsonSpan>();
  let isObject = false;
  scanJson(text, 1, (path, span) => {
    if (path.length === 1) members.set(String(path[0]), span);
    else isObject = span.kind === 'object';
  });
  return isObject ? members : null;
}

/**
 * Elements of the array that `text` holds, as spans into `text`. Returns null when the value is not an array.
 * Throws JsonSyntaxError.
 */
export function scanElements(text: Buffer): JsonSpan[] | null {
  const elements: JsonSpan[] = [];
  let isArray = false;
  scanJson(text, 1, (path, span) => {
    if (path.length === 1) elements.push(span);
    else isArray = span.kind === 'array';
  });
  return isArray ? elements : null;
}

/** The bytes of `span`, sharing memory with `text`. */
export function sliceOf(text: Buffer, span: Span): Buffer {
  return text.subarray(span.start, span.end);
}
