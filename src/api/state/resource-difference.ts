import { denseSliceBytes, Slices } from '../../shared/platform/slices/slices.ts';
import { diffProperties } from '../../shared/search/property-leaves.ts';
import { joinPath, type ResourceView, viewResource } from '../../shared/search/resource-facts.ts';
import { comparedMembers, isSameInStacks } from './resources/canonical-resource.ts';
import { listSecretsInSlices } from './resources/redacted-json.ts';
import { nameViews, type ValueViews } from './value-views.ts';

/** Differences of one resource that are shown. */
const maxPaths = 200;
/** The differences of a resource with more members are not sorted. */
const maxSorted = 1_000;
/** The cost of comparing a property within a time slice, besides its bytes. */
const comparisonBytes = 200;

/** A property whose values differ between two stacks. */
export interface StackProperty {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface StackDifference {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly change: 'created' | 'updated' | 'deleted';
  readonly paths: StackProperty[];
  readonly pathCount: number;
}

export interface Describing {
  readonly withOutputs: boolean;
  /** Positions of the secrets that are known to differ. */
  readonly secrets: ReadonlySet<number>;
  readonly values: ValueViews;
}

/** Null if there are no differences. `before` or `after` is null for a stack that lacks the resource. */
export async function describeDifference(
  before: Buffer | null,
  after: Buffer | null,
  describing: Describing,
): Promise<StackDifference | null> {
  const was = before && (await viewResource(before));
  const is = after && (await viewResource(after));
  const shown = is ?? was;
  if (shown === null) return null;
  const { paths, pathCount } = was && is ? await compare(was, is, describing) : { paths: [], pathCount: 0 };
  if (was && is && pathCount === 0) return null;
  return {
    ...nameViews(shown.urn, shown.string('type')),
    change: was && is ? 'updated' : is ? 'created' : 'deleted',
    paths,
    pathCount,
  };
}

async function compare(was: ResourceView, is: ResourceView, { secrets, values, withOutputs }: Describing) {
  const paths: StackProperty[] = [];
  let pathCount = 0;
  const slices = new Slices(denseSliceBytes);
  const add = async (path: string, before: Buffer | null | undefined, after: Buffer | null | undefined) => {
    if (++pathCount <= maxPaths) paths.push(await values.property(path, before, after));
  };
  // The order in which the secrets of `is` are counted.
  const names = new Set(await comparedMembers(is, withOutputs));
  for (const name of await comparedMembers(was, withOutputs)) names.add(name);
  let secretsSeen = 0;
  for (const name of names.size > maxSorted ? names : [...names].sort()) {
    const [old, next] = [was.raw(name), is.raw(name)];
    await slices.spend(comparisonBytes);
    const spans = next === null ? [] : await listSecretsInSlices(next);
    // In ascending order, like the properties with a new value.
    const changed = spans.flatMap(({ start }, at) => (secrets.has(secretsSeen + at) ? [start] : []));
    secretsSeen += spans.length;
    if (name !== 'inputs' && name !== 'outputs') {
      if (old === null || next === null || !(await isSameInStacks(name, old, next))) await add(name, old, next);
      continue;
    }
    let passed = 0;
    for (const { after: value, before: former, path } of await diffProperties(old, next)) {
      const isSame = former !== null && value !== null && (await isSameInStacks('', former.text, value.text));
      const start = value === null || next === null ? 0 : value.text.byteOffset - next.byteOffset;
      const end = start + (value?.text.length ?? 0);
      while ((changed[passed] ?? Number.POSITIVE_INFINITY) < start) passed++;
      const hasNewSecret = (changed[passed] ?? Number.POSITIVE_INFINITY) < end;
      if (!isSame || hasNewSecret) await add(joinPath(name, path), former?.text, value?.text);
      await slices.spend(comparisonBytes + end - start);
    }
  }
  return { paths, pathCount };
}
