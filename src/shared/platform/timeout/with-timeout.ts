/**
 * What `work` comes to, or a rejection with what `late` makes when that takes longer than `limitMs`. Work that is late goes on; what
 * becomes of it is ignored.
 */
export async function withTimeout<T>(work: Promise<T>, limitMs: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let lastLook: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // A process that was busy or frozen reads first what has come meanwhile.
    lastLook = setImmediate(() => reject(late()));
  }, limitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    clearImmediate(lastLook);
  }
}
