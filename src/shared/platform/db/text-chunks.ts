import { joined } from '../bytes/buffers.ts';
import { timeSliceBytes } from '../slices/slices.ts';

/** A chunk has up to four times as many bytes. */
const chunkChars = 512 * 1024;

/** Keeps one chunk in memory. `from` counts code points from 1, like `substr`. */
export async function* textInChunks(read: (from: number, chars: number) => Promise<string>): AsyncGenerator<string> {
  for (let from = 1; ; from += chunkChars) {
    const chunk = await read(from, chunkChars);
    if (chunk !== '') yield chunk;
    // `length` counts UTF-16 units, which are at least as many as the code points.
    if (chunk.length < chunkChars) return;
  }
}

/**
 * Each batch, one statement, has about 1 MiB, because the driver serializes a statement in one event loop tick. There is at least one,
 * possibly empty.
 */
export function inBatches<T>(rows: readonly T[], bytesOf: (row: T) => number): (readonly T[])[] {
  const batches: T[][] = [[]];
  let bytes = 0;
  for (const row of rows) {
    const size = bytesOf(row);
    const last = batches.at(-1) as T[];
    if (last.length > 0 && bytes + size > timeSliceBytes) {
      batches.push([row]);
      bytes = size;
    } else {
      last.push(row);
      bytes += size;
    }
  }
  return batches;
}

/**
 * Returns one binary parameter in UTF-8, with the start (from 1, like `substr`) and the length of each text. In an array of texts, the
 * driver would escape and Postgres would parse every character.
 */
export function packTexts(texts: readonly Buffer[]): { bytes: Buffer; starts: number[]; lengths: number[] } {
  const lengths = texts.map(({ length }) => length);
  let next = 1;
  const starts = lengths.map((length) => {
    const start = next;
    next += length;
    return start;
  });
  return { bytes: joined(texts), starts, lengths };
}
