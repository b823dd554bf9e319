/** The placeholder in a state for a redacted value. */
const secretMark = '[secret]';
/** Pulumi's signature of special values in states, and its value for secrets. */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '1b47061264138c4ac30d75fd1eb44270';

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null' | 'secret';

export interface JsonRow {
  /** Path in Pulumi's notation; the empty text is the value itself. */
  path: string;
  /** The property, or the index in an array; null for the value itself. */
  key: string | null;
  /** The path as names and indexes. */
  parts: readonly (string | number)[];
  depth: number;
  kind: JsonKind;
  /** The value of a leaf, or null. */
  value: string | null;
  childCount: number;
  isOpen: boolean;
}

/** A secret is a leaf, whatever else it contains. */
export function isRedacted(value: unknown): boolean {
  if (value === secretMark) return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.hasOwn(value, secretMark) || (value as Record<string, unknown>)[signatureKey] === secretSignature;
}

/** Redacted secrets are a kind of their own. */
export function kindOf(value: unknown): JsonKind {
  if (isRedacted(value)) return 'secret';
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  const type = typeof value;
  return type === 'object' || type === 'number' || type === 'boolean' ? type : 'string';
}

/** The path of a property: `tags.Name`, `ports[0]`, `tags["a.b"]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === 'number') return `${path}[${key}]`;
  // In the format of the server (src/shared/search/property-leaves.ts).
  if (!/^[\p{L}\p{N}_$/:@-]+$/u.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === '' ? key : `${path}.${key}`;
}

/** Redacted values have no children. */
export function childrenOf(value: unknown, path: string): { key: string; path: string; value: unknown }[] {
  const kind = kindOf(value);
  if (kind === 'array') {
    return (value as unknown[]).map((child, at) => ({ key: String(at), path: joinPath(path, at), value: child }));
  }
  if (kind !== 'object') return [];
  const entries = Object.entries(value as Record<string, unknown>);
  return entries.map(([key, child]) => ({ key, path: joinPath(path, key), value: child }));
}

/** Collapsed objects and arrays are not traversed, so the cost is proportional to the number of lines. At most `maxRows`. */
export function listJsonRows(
  value: unknown,
  isOpen: (path: string, depth: number) => boolean,
  maxRows = 100_000,
): JsonRow[] {
  const rows: JsonRow[] = [];
  const stack: {
    key: string | null;
    path: string;
    parts: readonly (string | number)[];
    value: unknown;
    depth: number;
  }[] = [{ key: null, path: '', parts: [], value, depth: 0 }];
  while (rows.length < maxRows) {
    const next = stack.pop();
    if (next === undefined) break;
    const kind = kindOf(next.value);
    const isContainer = kind === 'object' || kind === 'array';
    const childCount = isContainer ? countChildren(next.value as object) : 0;
    const open = childCount > 0 && isOpen(next.path, next.depth);
    const { key, path, parts, depth } = next;
    rows.push({
      key,
      path,
      parts,
      depth,
      kind,
      value: isContainer ? null : leafText(next.value, kind),
      childCount,
      isOpen: open,
    });
    if (!open) continue;
    const children = childrenOf(next.value, path);
    for (let at = children.length - 1; at >= 0; at--) {
      const child = children[at];
      if (child === undefined) continue;
      const part = kind === 'array' ? at : child.key;
      stack.push({ ...child, parts: [...parts, part], depth: depth + 1 });
    }
  }
  return rows;
}

/** Strings without quotes, numbers as in JSON. */
export function leafText(value: unknown, kind: JsonKind): string {
  if (kind === 'secret') return secretMark;
  if (kind === 'string') return String(value);
  return value === undefined ? '' : JSON.stringify(value);
}

function countChildren(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}
