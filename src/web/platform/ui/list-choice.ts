/**
 * The list changes meanwhile. Null: nothing is chosen yet, and the entry at `first` counts. -1: there is none, or the chosen entry is gone;
 * no other entry may take its place.
 */
export function positionOf(ids: readonly string[], chosen: string | null, first: 0 | -1): number {
  return chosen === null ? Math.min(first, ids.length - 1) : ids.indexOf(chosen);
}

/** The list is circular. */
export function stepFrom(ids: readonly string[], at: number, step: 1 | -1): string | null {
  if (ids.length === 0) return null;
  const next = at < 0 ? (step > 0 ? 0 : ids.length - 1) : (at + step + ids.length) % ids.length;
  return ids[next] ?? null;
}
