/** With fewer updates, there is no usual duration. */
const minUpdates = 8;
/** Differences below this are noise, in seconds. */
const minSeconds = 10;

export interface Durations<Item> {
  readonly median: number;
  /** The range of the middle half of all durations. */
  readonly usual: readonly [number, number];
  /** The longest ones first. */
  readonly outliers: readonly Item[];
}

/** Longer than the third quartile plus one and a half times the distance between the quartiles (Tukey). Null if there are too few items. */
export function findOutliers<Item extends { readonly seconds: number }>(
  items: readonly Item[],
): Durations<Item> | null {
  if (items.length < minUpdates) return null;
  const sorted = items.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const quantile = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const [low, median, high] = [quantile(0.25), quantile(0.5), quantile(0.75)];
  const limit = high + Math.max(1.5 * (high - low), minSeconds);
  return {
    median,
    usual: [low, high],
    outliers: items.filter(({ seconds }) => seconds > limit).sort((a, b) => b.seconds - a.seconds),
  };
}
