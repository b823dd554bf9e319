/** Rejects with the error from `late` if `work` takes longer than `limitMs`. Late work continues, and its result is ignored. */
export async function withTimeout<T>(work: Promise<T>, limitMs: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // After being blocked or suspended, the process first reads the data that has arrived meanwhile.
    immediate = setImmediate(() => reject(late()));
  }, limitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    clearImmediate(immediate);
  }
}
