/** Repeats `some`, which returns its number of rows, until it handles fewer than `rowsAtOnce`. Returns the total. */
export async function untilNoneLeft(
  rowsAtOnce: number,
  signal: AbortSignal,
  some: (limit: number) => Promise<number>,
): Promise<number> {
  let all = 0;
  for (let count = rowsAtOnce; count >= rowsAtOnce && !signal.aborted; all += count) count = await some(rowsAtOnce);
  return all;
}
