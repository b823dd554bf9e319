import { childrenOf, isRedacted, joinPath, kindOf } from './json-tree.ts';

export interface JsonChange {
  /** The path in Pulumi's notation. */
  path: string;
  kind: 'added' | 'removed' | 'changed';
  before: unknown;
  after: unknown;
}

/** In the order of the newer value; `isCut` if there are more than `limit`. */
export interface JsonDiff {
  changes: JsonChange[];
  isCut: boolean;
}

/**
 * The common beginning and end of arrays do not count as changes, so an item that is added in the middle is one change. Redacted secrets
 * are equal: only the server knows whether they changed.
 */
export function diffJson(before: unknown, after: unknown, limit = 1000): JsonDiff {
  const changes: JsonChange[] = [];
  const stack: { path: string; before: unknown; after: unknown }[] = [{ path: '', before, after }];
  while (changes.length <= limit) {
    const next = stack.pop();
    if (next === undefined) break;
    const children = compare(next, changes);
    for (let at = children.length - 1; at >= 0; at--) {
      const child = children[at];
      if (child !== undefined) stack.push(child);
    }
  }
  return { changes: changes.slice(0, limit), isCut: changes.length > limit };
}

interface Pair {
  path: string;
  before: unknown;
  after: unknown;
}

function compare({ path, before, after }: Pair, changes: JsonChange[]): Pair[] {
  if (before === absent || after === absent) {
    const kind = before === absent ? 'added' : 'removed';
    changes.push({
      path,
      kind,
      before: before === absent ? undefined : before,
      after: after === absent ? undefined : after,
    });
    return [];
  }
  const kind = kindOf(before);
  if (kind !== kindOf(after)) {
    changes.push({ path, kind: 'changed', before, after });
    return [];
  }
  if (kind === 'object') return pairProperties(path, before as object, after as object);
  if (kind === 'array') return pairItems(path, before as unknown[], after as unknown[]);
  if (!isEqual(before, after)) changes.push({ path, kind: 'changed', before, after });
  return [];
}

/** Represents a missing property, because null is a value. */
const absent = Symbol('absent');

function pairProperties(path: string, before: object, after: object): Pair[] {
  const pairs: Pair[] = [];
  const old = new Map(childrenOf(before, path).map((child) => [child.key, child]));
  for (const child of childrenOf(after, path)) {
    const match = old.get(child.key);
    old.delete(child.key);
    pairs.push({ path: child.path, before: match === undefined ? absent : match.value, after: child.value });
  }
  for (const child of old.values()) pairs.push({ path: child.path, before: child.value, after: absent });
  return pairs;
}

function pairItems(path: string, before: unknown[], after: unknown[]): Pair[] {
  if (before.length === after.length) {
    return after.map((item, at) => ({ path: joinPath(path, at), before: before[at], after: item }));
  }
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isEqual(before[start], after[start])) start += 1;
  let end = 0;
  while (end < shorter - start && isEqual(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const oldCount = before.length - start - end;
  const newCount = after.length - start - end;
  return Array.from({ length: Math.max(oldCount, newCount) }, (_, at) => ({
    path: joinPath(path, start + at),
    before: at < oldCount ? before[start + at] : absent,
    after: at < newCount ? after[start + at] : absent,
  }));
}

/** The order of properties does not count. */
export function isEqual(one: unknown, other: unknown): boolean {
  const stack: [unknown, unknown][] = [[one, other]];
  for (let pair = stack.pop(); pair !== undefined; pair = stack.pop()) {
    const [left, right] = pair;
    if (Object.is(left, right) || (isRedacted(left) && isRedacted(right))) continue;
    const kind = kindOf(left);
    if (kind !== kindOf(right)) return false;
    if (kind === 'object' || kind === 'array') {
      const mine = childrenOf(left, '');
      const theirs = new Map(childrenOf(right, '').map((child) => [child.key, child.value]));
      if (mine.length !== theirs.size) return false;
      for (const { key, value } of mine) {
        if (!theirs.has(key)) return false;
        stack.push([value, theirs.get(key)]);
      }
    } else if (left !== right) return false;
  }
  return true;
}
