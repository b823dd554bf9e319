/** Resources that differ from the state, by the operation that would repair the state (`update`, `delete`, …). */
export type DriftCounts = Readonly<Record<string, number>>;

/** A refresh reports these for a resource that matches the state, or that it did not compare. */
const unchanged = new Set(['same', 'refresh', 'read', 'discard']);

/**
 * Null if the summary of a refresh has no counts, e.g. because it was lost. Ignores values that are not counts, because a client sent the
 * text.
 */
export function driftOfSummary(resourceChanges: string): DriftCounts | null {
  const counts = Object.entries(parsed(resourceChanges) ?? {}).filter(
    ([operation, count]) => /^[a-z-]{1,40}$/.test(operation) && isCount(count),
  );
  if (counts.length === 0) return null;
  return Object.fromEntries(counts.filter(([operation]) => !unchanged.has(operation))) as DriftCounts;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

/** The drift of one resource in an update with --refresh; null if the event is not about a refresh. */
export function driftOfEvent(text: string): 'same' | 'update' | 'delete' | null {
  const event = parsed(text) as { resOutputsEvent?: { metadata?: Readonly<Record<string, unknown>> } } | null;
  const metadata = event?.resOutputsEvent?.metadata;
  if (metadata?.['op'] !== 'refresh') return null;
  if (metadata['new'] === null || metadata['new'] === undefined) return 'delete';
  const { detailedDiff, diffs } = metadata;
  const isChanged =
    (Array.isArray(diffs) && diffs.length > 0) ||
    (typeof detailedDiff === 'object' && detailedDiff !== null && Object.keys(detailedDiff).length > 0);
  return isChanged ? 'update' : 'same';
}

function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
