/** Keeps only counts: a single other value would keep the CLI from showing any history. */
export function changeCounts(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return '{}';
  return JSON.stringify(Object.fromEntries(Object.entries(value).filter(([, count]) => Number.isSafeInteger(count))));
}
