const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];
const maxTicks = 8;

/** Marks of a time axis from 0 to `total` seconds: at most eight, at round times. */
export function listTicks(total: number): number[] {
  const step = steps.find((each) => total / each <= maxTicks) ?? Math.ceil(total / maxTicks);
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step);
}
