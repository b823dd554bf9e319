/**
 * The position of the chosen entry in a list that changes under the hand. Null: the one at `first`, before anything is chosen. -1: there
 * is none, or the chosen one is gone: another one may not take its place.
 */
export function positionOf(ids: readonly string[], chosen: string | null, first: 0 | -1): number {
  return chosen === null ? Math.min(first, ids.length - 1) : ids.indexOf(chosen);
}

/** The entry after or before the one at `at`; the list has no ends. */
export function stepFrom(ids: readonly string[], at: number, step: 1 | -1): string | null {
  if (ids.length === 0) return null;
  const next = at < 0 ? (step > 0 ? 0 : ids.length - 1) : (at + step + ids.length) % ids.length;
  return ids[next] ?? null;
}
