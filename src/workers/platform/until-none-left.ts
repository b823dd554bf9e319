/** Runs `some`, which returns how many rows it has handled, until it handles fewer than `rowsAtOnce`. Returns how many there were. */
export async function untilNoneLeft(
  rowsAtOnce: number,
  signal: AbortSignal,
  some: (limit: number) => Promise<number>,
): Promise<number> {
  let all = 0;
  for (let count = rowsAtOnce; count >= rowsAtOnce && !signal.aborted; all += count) count = await some(rowsAtOnce);
  return all;
}
