/** Ticks of the event loop during the work, between which other requests are served. */
export async function slicesOf(work: () => Promise<unknown>): Promise<number> {
  let slices = 0;
  let next = setImmediate(function count() {
    slices++;
    next = setImmediate(count);
  });
  try {
    await work();
    return slices;
  } finally {
    clearImmediate(next);
  }
}
