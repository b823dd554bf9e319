/** If not exact, that version or an earlier one set the property. */
export interface BlamedPath {
  readonly path: string;
  readonly version: number | null;
  readonly isExact: boolean;
}

/** The blame of the property at `path`: for an object or array, the newest of its contents. Null if unknown. */
export function blameOf(properties: readonly BlamedPath[], path: string): BlamedPath | null {
  let newest: BlamedPath | null = null;
  for (const each of properties) {
    const isWithin = each.path === path || (each.path.startsWith(path) && /^[.[]/.test(each.path.slice(path.length)));
    // Deep properties are known only as parts of their containers.
    const contains = path.startsWith(each.path) && /^[.[]/.test(path.slice(each.path.length));
    if (!isWithin && !contains) continue;
    if (newest === null || (each.version ?? -1) > (newest.version ?? -1)) newest = each;
  }
  return newest;
}
