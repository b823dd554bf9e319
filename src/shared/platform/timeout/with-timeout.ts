/** Rejects with the error from `late`. Late work continues, and its result is ignored. */
export async function withTimeout<T>(work: Promise<T>, limitMs: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // A process that was blocked or suspended first reads the data that has arrived meanwhile.
    immediate = setImmediate(() => reject(late()));
  }, limitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    clearImmediate(immediate);
  }
}
