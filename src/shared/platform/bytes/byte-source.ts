import type { Span } from '../json/json-scanner.ts';
import { inSlices } from '../slices/slices.ts';

/** The bytes can be read more than once, with the same result. */
export type ByteSource = () => AsyncIterable<Buffer>;

export function bytesOf(...parts: readonly Buffer[]): ByteSource {
  return () => inSlices(parts);
}

/** Ranges are cut out of `source` and must be in ascending order. */
export function cutOut(source: ByteSource, parts: readonly (Buffer | Span)[]): ByteSource {
  return async function* () {
    for (const part of parts) {
      if (Buffer.isBuffer(part)) yield part;
      else yield* range(source, part.start, part.end);
    }
  };
}

async function* range(source: ByteSource, start: number, end: number): AsyncGenerator<Buffer> {
  let offset = 0;
  for await (const chunk of source()) {
    const from = Math.max(start - offset, 0);
    const to = Math.min(end - offset, chunk.length);
    if (from < to) yield chunk.subarray(from, to);
    offset += chunk.length;
    if (offset >= end) return;
  }
}
