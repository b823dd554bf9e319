/** A property and the version that set it; not exact: that one or one before it. */
export interface BlamedPath {
  readonly path: string;
  readonly version: number | null;
  readonly isExact: boolean;
}

/** What is known of the property at `path`: of an object or array, the newest of what it contains. Null if nothing is. */
export function blameOf(properties: readonly BlamedPath[], path: string): BlamedPath | null {
  let newest: BlamedPath | null = null;
  for (const each of properties) {
    const isWithin = each.path === path || (each.path.startsWith(path) && /^[.[]/.test(each.path.slice(path.length)));
    // Deep properties are only known as parts of what contains them.
    const contains = path.startsWith(each.path) && /^[.[]/.test(path.slice(each.path.length));
    if (!isWithin && !contains) continue;
    if (newest === null || (each.version ?? -1) > (newest.version ?? -1)) newest = each;
  }
  return newest;
}
