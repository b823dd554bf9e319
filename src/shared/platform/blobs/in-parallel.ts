/** Throws the first error after the others have ended, and the reason of the signal. */
export async function inParallel<T>(
  items: readonly T[],
  signal: AbortSignal | undefined,
  work: (item: T) => Promise<void>,
  atOnce = 16,
): Promise<void> {
  let next = 0;
  const run = async (): Promise<void> => {
    try {
      while (next < items.length) {
        signal?.throwIfAborted();
        await work(items[next++] as T);
      }
    } catch (error) {
      // The others finish their current item.
      next = items.length;
      throw error;
    }
  };
  const runs = Array.from({ length: atOnce }, run);
  await Promise.allSettled(runs);
  await Promise.all(runs);
}
