import { type Counts, comparedCounts, type Usual } from './statistics-repository.ts';

/** Fewer updates say nothing about what is usual. */
const minUpdates = 5;

/** The counts of a summary, whose text was sent by a client: anything that is not a count is left out. */
export function countsOf(resourceChanges: string): Counts {
  const values = parsed(resourceChanges);
  const count = (operation: string): number => {
    const value = values[operation];
    return Number.isSafeInteger(value) && (value as number) > 0 ? Math.min(value as number, 1_000_000_000) : 0;
  };
  return { creates: count('create'), updates: count('update'), replaces: count('replace'), deletes: count('delete') };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The operations that a preview has more of than earlier updates, as in `deletes 14, usually 0 to 2`; null if none. */
export function describeUnusual(counts: Counts, usual: Usual | null): string | null {
  if (!usual || usual.count < minUpdates) return null;
  const unusual = comparedCounts.flatMap((name) => {
    const [from, to] = usual.counts[name];
    return counts[name] > to ? [`${name} ${counts[name]}, usually ${from === to ? to : `${from} to ${to}`}`] : [];
  });
  return unusual.length === 0 ? null : unusual.join('; ');
}
