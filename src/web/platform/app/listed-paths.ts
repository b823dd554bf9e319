import { diffJson, isEqual } from '../ui/json-diff.ts';
import { nameInUrn } from './resource-name.ts';

/** Null: the property is missing on that side. */
export interface ListedPath {
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
  /** Whether the output of the same name has the same change. */
  readonly isAlsoOutput?: boolean;
}

const maxInText = 50;

/**
 * JSON documents in strings are compared inside, providers have their short names, and outputs that only repeat the change of their input
 * are shown with it.
 */
export function listPaths(paths: readonly ListedPath[]): ListedPath[] {
  const inputs = new Map(paths.filter(({ path }) => path.startsWith('inputs.')).map((each) => [each.path, each]));
  const repeated = new Set<string>();
  const kept = paths.filter(({ after, before, path }) => {
    const input = path.startsWith('outputs.') ? inputs.get(path.replace('outputs.', 'inputs.')) : undefined;
    if (input === undefined || !isEqual(input.before, before) || !isEqual(input.after, after)) return true;
    repeated.add(input.path);
    return false;
  });
  return kept.flatMap((each) =>
    insideOf(each).map((shown) => (repeated.has(each.path) ? { ...shown, isAlsoOutput: true } : shown)),
  );
}

function insideOf({ after, before, path }: ListedPath): ListedPath[] {
  if (path === 'provider') return [{ path, before: providerName(before), after: providerName(after) }];
  const [old, next] = [documentIn(before), documentIn(after)];
  if (old === null || next === null) return [{ path, before, after }];
  const { changes, isCut } = diffJson(old, next, maxInText);
  // The texts differ only in whitespace, or in too many places.
  if (changes.length === 0 || isCut) return [{ path, before, after }];
  return changes.map((change) => ({
    path: joinInside(path, change.path),
    before: change.before ?? null,
    after: change.after ?? null,
  }));
}

/** `a` and `[0].b` become `a[0].b`, as the CLI shows documents in strings. */
function joinInside(path: string, inside: string): string {
  return inside === '' || inside.startsWith('[') ? `${path}${inside}` : `${path}.${inside}`;
}

function documentIn(value: unknown): object | null {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return null;
  try {
    const document: unknown = JSON.parse(value);
    return typeof document === 'object' ? document : null;
  } catch {
    return null;
  }
}

/** The name of a provider from `urn::id`: it contains the package and version. */
function providerName(value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith('urn:')) return value;
  const parts = value.split('::');
  const [stack, project, type, name] = parts;
  return parts.length < 4 ? value : `${type?.split(':').at(-1)} ${nameInUrn([stack, project, type, name].join('::'))}`;
}
