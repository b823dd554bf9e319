/** The counts of changes of an update as JSON text, without other values: the CLI would show no history at all because of one. */
export function changeCounts(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return '{}';
  return JSON.stringify(Object.fromEntries(Object.entries(value).filter(([, count]) => Number.isSafeInteger(count))));
}
