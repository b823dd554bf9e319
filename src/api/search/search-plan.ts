import type { Term } from './search-query.ts';
import type { SearchRepository } from './search-repository.ts';
import type { ResourceTerm, StackTerm } from './search-terms.ts';
import type { WalkedStack } from './stack-walk.ts';
import { isInRange } from './version-range.ts';

/** A condition with more matches does not narrow down the stacks. */
const maxProbed = 5_000;
/** Nor does one whose matches Postgres does not find within this time. */
const probeMs = 1_000;
/** Words in more resources are not probed: their index lists all matches before the first is returned. */
const maxListed = 100_000;
/** With fewer stacks, no further conditions are probed. */
const fewStacks = 100;

export interface SearchPlan {
  readonly terms: readonly StackTerm[];
  readonly resourceTerms: readonly ResourceTerm[];
  /** Only these stacks; null: all. */
  readonly within: readonly string[] | null;
}

/** Chooses the stacks to search, by conditions that match few resources. */
export async function planSearch(rows: SearchRepository, terms: readonly Term[]): Promise<SearchPlan> {
  const stackTerms: StackTerm[] = [];
  const resourceTerms: ResourceTerm[] = [];
  for (const { condition, isNegated } of terms) {
    if (condition.kind === 'stack' || condition.kind === 'tag') stackTerms.push({ condition, isNegated });
    else resourceTerms.push({ condition, isNegated });
    // Stacks without recent changes have no recently changed resources.
    if (condition.kind === 'changed' && !condition.isOlder && !isNegated) stackTerms.push({ condition, isNegated });
  }
  let within: readonly string[] | null = null as readonly string[] | null;
  let isSlow = false;
  for (const term of resourceTerms) {
    if (!isProbed(term) || (within !== null && within.length <= fewStacks)) continue;
    const { condition } = term;
    // For a word, Postgres reads all matches in its index, of all organizations.
    if (condition.kind === 'words' && (isSlow || (await rows.estimate(condition.words)) > maxListed)) continue;
    const found = await rows.probe(condition, { limit: maxProbed, ms: probeMs });
    isSlow ||= found === 'slow';
    if (typeof found === 'string') continue;
    const known: ReadonlySet<string> | null = within && new Set(within);
    within = known ? found.filter((id) => known.has(id)) : found;
  }
  return { terms: stackTerms, resourceTerms, within };
}

/** An index finds the matches. */
function isProbed({ condition, isNegated }: ResourceTerm): boolean {
  if (isNegated) return false;
  if (condition.kind === 'words') return true;
  if (condition.kind === 'flag') return condition.field === 'protect' && condition.value;
  if (condition.kind !== 'text') return false;
  const { field, pattern } = condition;
  if (field === 'urn') return pattern.includes('::') && !pattern.includes('*');
  return (field === 'type' || field === 'name') && !pattern.startsWith('*');
}

/** Keeps the stacks with a provider version in the range of each version term, and adds the versions in the ranges to the terms. */
export async function narrow(
  rows: SearchRepository,
  stacks: readonly WalkedStack[],
  terms: readonly ResourceTerm[],
): Promise<{ readonly stacks: readonly WalkedStack[]; readonly terms: readonly ResourceTerm[] }> {
  const isRanged = ({ condition }: ResourceTerm) => condition.kind === 'version' && condition.range !== null;
  if (!terms.some(isRanged)) return { stacks, terms };
  const providers = await rows.listProviders(stacks.map(({ id }) => id));
  const ranged = terms.map((term) => {
    const { condition } = term;
    if (condition.kind !== 'version' || condition.range === null) return term;
    const { range } = condition;
    const versions = providers.flatMap(({ version }) =>
      version !== null && isInRange(version, range) ? [version] : [],
    );
    return { ...term, versions: [...new Set(versions)] };
  });
  let left = stacks;
  for (const { condition, isNegated, versions = [] } of ranged) {
    if (isNegated || condition.kind !== 'version' || condition.range === null) continue;
    const having = new Set(
      providers.flatMap(({ stackId, version }) => (version !== null && versions.includes(version) ? [stackId] : [])),
    );
    left = left.filter(({ id }) => having.has(id));
  }
  return { stacks: left, terms: ranged };
}
