/** The longest time between two ticks that counts in full, in ms. */
const longestTickMs = 50;

/**
 * Measures in ms how long something takes in this process, apart from the time in which the process itself did not run:
 * on a busy machine that is not the time of what is measured. Call the result once, at the end.
 */
export function startStopwatch(): () => number {
  let total = 0;
  let last = performance.now();
  const tick = (): void => {
    const now = performance.now();
    total += Math.min(now - last, longestTickMs);
    last = now;
  };
  const timer = setInterval(tick, 5);
  return () => {
    clearInterval(timer);
    tick();
    return total;
  };
}
