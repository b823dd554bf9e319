import { JsonScanner } from '../platform/json/json-scanner.ts';
import { denseSliceBytes, Slices, scanInSlices } from '../platform/slices/slices.ts';
import { cutText } from '../platform/text/cut-text.ts';

/** The CLI recognizes special values by this member (sdk/go/common/resource/properties.go). */
const signatureKey = '4dabf18193072939515e22adb298388d';
const secretSignature = '"1b47061264138c4ac30d75fd1eb44270"';

/** Deeper values are compared as a whole. */
const maxDepth = 8;
/** With more leaves, only the outermost properties are compared. */
const maxLeaves = 2_000;
/** More values are not listed: a resource of a few MiB may have millions. */
const maxListed = 20_000;
/** Depths at which leaves are searched, each with its maximum number of leaves. */
const attempts = [
  [maxDepth, maxLeaves],
  [1, maxListed],
] as const;
/** The cost of a compared leaf in a slice. */
const leafBytes = 100;
/** Longer property names are cut, in characters. */
const maxPathLength = 200;

/** Compared as a whole: a scalar, an empty object or array, a secret, an asset. */
export interface Leaf {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly isSecret: boolean;
}

/** Raw JSON; null for an absent side. */
export interface PropertyDifference {
  readonly path: string;
  readonly before: { readonly text: Buffer; readonly isSecret: boolean } | null;
  readonly after: { readonly text: Buffer; readonly isSecret: boolean } | null;
}

/** Null stands for an empty object. Compares bytes, so `1.0` differs from `1`. Runs in slices of the event loop. */
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

/** In the form of `diffProperties`. Throws JsonSyntaxError. */
export async function listLeafPathsInSlices(text: Buffer | null): Promise<string[]> {
  if (text === null) return [];
  for (const [depth, most] of attempts) {
    const leaves = await listLeaves(text, depth);
    if (leaves !== null && leaves.length <= most) return leaves.map(({ path }) => path);
  }
  return [''];
}

/** All at the same depth: the deepest one with few enough leaves. If even the outermost depth has too many, each object is one leaf. */
async function leavesOf(texts: readonly (Buffer | null)[]): Promise<readonly (readonly Leaf[])[]> {
  for (const [depth, most] of attempts) {
    const lists: (readonly Leaf[] | null)[] = [];
    for (const text of texts) lists.push(await listLeaves(text, depth));
    const short = lists.filter((leaves) => leaves !== null && leaves.length <= most);
    if (short.length === lists.length) return short as Leaf[][];
  }
  return texts.map((text) => (text === null ? [] : [{ path: '', start: 0, end: text.length, isSecret: false }]));
}

class TooManyLeaves extends Error {}

/** In order; null if there are too many leaves. Throws JsonSyntaxError. */
async function listLeaves(text: Buffer | null, depth: number): Promise<readonly Leaf[] | null> {
  if (text === null) return [];
  const { leaves, scanner } = leafScanner(text, depth);
  if (!(await scanInSlices(scanner, text, denseSliceBytes).then(() => true, unlessTooMany))) return null;
  scanner.end();
  return leaves;
}

function unlessTooMany(error: unknown): false {
  if (error instanceof TooManyLeaves) return false;
  throw error;
}

/** The scanner throws TooManyLeaves. */
function leafScanner(text: Buffer, depth: number): { readonly scanner: JsonScanner; readonly leaves: Leaf[] } {
  const leaves: Leaf[] = [];
  /** The kind of the open object at each depth. */
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
      // One level more is read than reported: it determines the kind of its parent.
      if (at > depth) return;
      if (isContainer && signature === undefined && at < depth && (leaves.at(-1)?.start ?? -1) >= start) return;
      while ((leaves.at(-1)?.start ?? -1) >= start) leaves.pop();
      if (leaves.length === maxListed) throw new TooManyLeaves();
      leaves.push({ path: pathText(path), start, end, isSecret: signature === 'secret' });
    },
  });
  return { scanner, leaves };
}

/** As the CLI does: `tags.Name`, `rules[0].port`, `tags["a.b"]`. */
function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    if (text.length > maxPathLength) break;
    // Cut first: otherwise, each of its leaves would process and keep the whole name.
    const name = typeof part === 'number' ? part : cutText(part, maxPathLength + 1);
    if (typeof name === 'number') text += `[${name}]`;
    else if (/^[\p{L}\p{N}_$/:@-]+$/u.test(name)) text += text === '' ? name : `.${name}`;
    else text += `[${JSON.stringify(name)}]`;
  }
  return text.length > maxPathLength ? `${cutText(text, maxPathLength - 1)}…` : text;
}
