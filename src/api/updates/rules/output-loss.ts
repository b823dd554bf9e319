/** Longer names are cut, and further names are dropped. */
const maxNameChars = 200;
const maxNames = 1_000;
const maxNotifiedNames = 5;

/** The outputs that are in the old state of a resource but not in its new state. Values are not read. Throws SyntaxError. */
export function outputLossOf(text: string): string[] {
  const event = objectOf(JSON.parse(text))?.['resOutputsEvent'];
  const metadata = objectOf(objectOf(event)?.['metadata']);
  const before = objectOf(objectOf(metadata?.['old'])?.['outputs']);
  // Without a new state, the stack itself is removed: the check for destroys handles that.
  const next = objectOf(metadata?.['new']);
  if (!before || !next) return [];
  const after = objectOf(next['outputs']) ?? {};
  return Object.keys(before)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => name.slice(0, maxNameChars).toWellFormed().replaceAll('\0', ''))
    .sort()
    .slice(0, maxNames);
}

/** Like `"a", "b" and 3 more`. */
export function listOutputs(names: readonly string[]): string {
  const notified = names.slice(0, maxNotifiedNames).map((name) => JSON.stringify(name));
  const more = names.length - notified.length;
  return more > 0 ? `${notified.join(', ')} and ${more} more` : notified.join(', ');
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
