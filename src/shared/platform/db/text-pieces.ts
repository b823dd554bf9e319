import { turnBytes } from '../turns/turns.ts';

/** Characters that are read at once of a text which is too large to be read whole; up to four times as many bytes. */
const pieceChars = 512 * 1024;

/**
 * A large text of a row, a piece in memory at a time. `read` returns as many characters as it is told from a place on, which counts
 * from 1 and in code points, as `substr` does.
 */
export async function* textInPieces(read: (from: number, chars: number) => Promise<string>): AsyncGenerator<string> {
  for (let from = 1; ; from += pieceChars) {
    const piece = await read(from, pieceChars);
    if (piece !== '') yield piece;
    // Never fewer units than code points.
    if (piece.length < pieceChars) return;
  }
}

/** Cuts rows into statements of about 1 MiB: the driver writes a statement out in one turn. There is always one, maybe empty. */
export function inBatches<T>(rows: readonly T[], bytesOf: (row: T) => number): (readonly T[])[] {
  const batches: T[][] = [[]];
  let bytes = 0;
  for (const row of rows) {
    const size = bytesOf(row);
    const last = batches.at(-1) as T[];
    if (last.length > 0 && bytes + size > turnBytes) {
      batches.push([row]);
      bytes = size;
    } else {
      last.push(row);
      bytes += size;
    }
  }
  return batches;
}
