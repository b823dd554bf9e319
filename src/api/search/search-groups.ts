import type { SearchBudget } from './search-budget.ts';
import type { SearchedOrganization, SearchRepository } from './search-repository.ts';
import type { StackTerm } from './search-terms.ts';
import { type WalkedStack, walkStacks } from './stack-walk.ts';

const maxGroups = 100;
/** Higher than for lists: counts are cheaper. */
const firstResources = 50_000;

export interface SearchGroup {
  readonly name: string;
  /** The version of a provider. */
  readonly version: string | null;
  readonly resources: number;
  readonly stacks: number;
}

export interface SearchCounts {
  readonly resources: number;
  readonly groups: readonly SearchGroup[];
  readonly otherGroups: number;
  /** The search was cut short, so the counts are too low. */
  readonly isCut: boolean;
  readonly isTrimmed: boolean;
}

/** Adds up what `countBatch` returns for each batch of stacks; returns the largest groups. */
export async function countGroups(
  rows: SearchRepository,
  organizations: readonly SearchedOrganization[],
  {
    budget,
    isTrimmed,
    ...plan
  }: {
    readonly within: readonly string[] | null;
    readonly terms: readonly StackTerm[];
    readonly budget: SearchBudget;
    readonly isTrimmed: boolean;
  },
  countBatch: (stacks: readonly WalkedStack[]) => Promise<readonly SearchGroup[]>,
): Promise<SearchCounts> {
  const groups = new Map<string, { -readonly [Key in keyof SearchGroup]: SearchGroup[Key] }>();
  let resources = 0;
  let isCut = false;
  for await (const batch of walkStacks(rows, {
    ...plan,
    organizations,
    after: null,
    firstResources,
  })) {
    for (const row of await countBatch(batch.stacks)) {
      resources += row.resources;
      const key = `${row.name}\n${row.version ?? ''}`;
      const known = groups.get(key);
      if (known === undefined) groups.set(key, { ...row });
      else {
        known.resources += row.resources;
        known.stacks += row.stacks;
      }
    }
    if (!budget.spend(batch)) {
      isCut = true;
      break;
    }
  }
  const sorted = [...groups.values()].sort((a, b) => b.resources - a.resources || (a.name < b.name ? -1 : 1));
  const otherGroups = Math.max(0, sorted.length - maxGroups);
  return { resources, groups: sorted.slice(0, maxGroups), otherGroups, isCut, isTrimmed };
}
