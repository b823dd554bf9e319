import { JsonScanner } from '../platform/json/json-scanner.ts';
import { denseSliceBytes, Slices, scanInSlices } from '../platform/slices/slices.ts';
import { cutText } from '../platform/text/cut-text.ts';

/** The member by which the CLI recognizes special values, and its value for secrets (sdk/go/common/resource/properties.go). */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '"1b47061264138c4ac30d75fd1eb44270"';

/** Deeper values are compared as a whole. */
const maxDepth = 8;
/** With more values, only the outermost properties are compared. */
const maxLeaves = 2_000;
/** With more values than this, they are not listed: a resource of a few MiB may have millions. */
const maxListed = 20_000;
/** Depths at which leaves are searched, and the maximum number of leaves. */
const attempts = [
  [maxDepth, maxLeaves],
  [1, maxListed],
] as const;
/** The cost of a leaf within a slice, when leaves are compared. */
const leafBytes = 100;
/** Longer names of properties are cut, in characters. */
const maxPathLength = 200;

/** A value that is compared as a whole: a scalar, an empty object or array, a secret, an asset. */
export interface Leaf {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly isSecret: boolean;
}

/** A difference between two property values, with the raw JSON of both sides; null where there is none. */
export interface PropertyDifference {
  readonly path: string;
  readonly before: { readonly text: Buffer; readonly isSecret: boolean } | null;
  readonly after: { readonly text: Buffer; readonly isSecret: boolean } | null;
}

/**
 * Compares two objects of properties, leaf by leaf; null stands for an empty object. Compares bytes: `1.0` is not `1`. Takes slices of the
 * event loop.
 */
export async function diffProperties(before: Buffer | null, after: Buffer | null): Promise<PropertyDifference[]> {
  if (before !== null && after !== null && before.equals(after)) return [];
  const [old = [], next = []] = await leavesOf([before, after]);
  const slices = new Slices(denseSliceBytes);
  const side = (source: Buffer | null, leaf: Leaf | undefined) =>
    leaf === undefined || source === null
      ? null
      : { text: source.subarray(leaf.start, leaf.end), isSecret: leaf.isSecret };
  const found: PropertyDifference[] = [];
  const left = new Map(old.map((leaf) => [leaf.path, leaf]));
  for (const leaf of next) {
    const was = side(before, left.get(leaf.path));
    left.delete(leaf.path);
    await slices.spend(leafBytes);
    const is = side(after, leaf);
    if (was !== null && is !== null && was.text.equals(is.text)) continue;
    found.push({ path: leaf.path, before: was, after: is });
  }
  for (const leaf of left.values()) found.push({ path: leaf.path, before: side(before, leaf), after: null });
  return found;
}

/** Paths of the values in the object in `text`, as `diffProperties` names them. Throws JsonSyntaxError. */
export async function listLeafPathsInSlices(text: Buffer | null): Promise<string[]> {
  if (text === null) return [];
  for (const [depth, most] of attempts) {
    const leaves = await listLeaves(text, depth);
    if (leaves !== null && leaves.length <= most) return leaves.map(({ path }) => path);
  }
  return [''];
}

/**
 * The leaves of objects, all at the same depth: the deepest that yields few enough. With too many even at the outermost depth, each object
 * is one leaf.
 */
async function leavesOf(texts: readonly (Buffer | null)[]): Promise<readonly (readonly Leaf[])[]> {
  for (const [depth, most] of attempts) {
    const lists: (readonly Leaf[] | null)[] = [];
    for (const text of texts) lists.push(await listLeaves(text, depth));
    const short = lists.filter((leaves) => leaves !== null && leaves.length <= most);
    if (short.length === lists.length) return short as Leaf[][];
  }
  return texts.map((text) => (text === null ? [] : [{ path: '', start: 0, end: text.length, isSecret: false }]));
}

/** Ends a scan. */
class TooManyLeaves extends Error {}

/** The leaves of the object in `text`, in order; null if there are too many. Throws JsonSyntaxError. */
async function listLeaves(text: Buffer | null, depth: number): Promise<readonly Leaf[] | null> {
  if (text === null) return [];
  const { leaves, scanner } = leafScanner(text, depth);
  if (!(await scanInSlices(scanner, text, denseSliceBytes).then(() => true, unlessTooMany))) return null;
  scanner.end();
  return leaves;
}

/** Returns false for the error that ends a scan; rethrows any other. */
function unlessTooMany(error: unknown): false {
  if (error instanceof TooManyLeaves) return false;
  throw error;
}

/** A scanner that is to be fed `text`, and the leaves that it has found. It throws TooManyLeaves. */
function leafScanner(text: Buffer, depth: number): { readonly scanner: JsonScanner; readonly leaves: Leaf[] } {
  const leaves: Leaf[] = [];
  /** By depth: the open object at that depth. */
  const signed: (undefined | 'secret' | 'other')[] = [];
  const scanner = new JsonScanner({
    reportDepth: depth + 1,
    onValue: (path, kind, start, end) => {
      const at = path.length;
      if (kind === 'string' && path[at - 1] === signatureKey)
        signed[at - 1] = text.toString('utf8', start, end) === secretSignature ? 'secret' : 'other';
      const isContainer = kind === 'object' || kind === 'array';
      const signature = isContainer ? signed[at] : undefined;
      if (isContainer) signed[at] = undefined;
      if (at === 0) return;
      // One level more is read than reported, because it determines the kind of its parent.
      if (at > depth) return;
      if (isContainer && signature === undefined && at < depth && (leaves.at(-1)?.start ?? -1) >= start) return;
      while ((leaves.at(-1)?.start ?? -1) >= start) leaves.pop();
      if (leaves.length === maxListed) throw new TooManyLeaves();
      leaves.push({ path: pathText(path), start, end, isSecret: signature === 'secret' });
    },
  });
  return { scanner, leaves };
}

/** As the CLI writes it: `tags.Name`, `rules[0].port`, `tags["a.b"]`. */
function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (text.length > maxPathLength) break;
    // Of a long name, each of its leaves would otherwise read and keep all.
    const name = typeof part === 'number' ? part : cutText(part, maxPathLength + 1);
    if (typeof name === 'number') text += `[${name}]`;
    else if (/^[\p{L}\p{N}_$/:@-]+$/u.test(name)) text += text === '' ? name : `.${name}`;
    else text += `[${JSON.stringify(name)}]`;
  }
  return text.length > maxPathLength ? `${cutText(text, maxPathLength - 1)}…` : text;
}
