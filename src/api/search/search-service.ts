import { isStatementTimeout } from '../../shared/platform/db/sqlstate.ts';
import { AppError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { parseSearchQuery, type Term } from '../../shared/resources/search/search-query.ts';
import {
  createSearchRepository,
  type FoundResource,
  type GroupField,
  type ResourceTerm,
  type SearchedOrganization,
  type SearchRepository,
  type StackTerm,
} from '../../shared/resources/search/search-repository.ts';
import { compareVersionTexts, isInRange } from '../../shared/resources/search/version-range.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import type { ApiContext } from '../api-context.ts';
import type { Caller } from '../request.ts';
import { CallerTurns } from '../turns/caller-turns.ts';
import { type WalkedStack, walkStacks } from './stack-walk.ts';

/** How much one search does before it says that it is cut short. */
export interface SearchBounds {
  /** Looks no further after this time, in ms. */
  readonly ms: number;
  /** Looks no further after so many resources. */
  readonly resources: number;
}

const defaultBounds: SearchBounds = { ms: 1_500, resources: 5_000_000 };
/** A single statement that takes longer fails, in ms. */
const statementMs = 5_000;
/** Searches of one process at once: others need connections to Postgres, too. */
const atOnce = 3;
/** A condition that more resources meet does not tell which stacks to look at. */
const maxProbed = 5_000;
/** With fewer stacks, no more conditions are asked for which. */
const fewStacks = 100;
const firstResources = 5_000;
const maxGroups = 100;
const providerPrefix = 'pulumi:providers:';

/** A place in the results; without `place` and `key`: behind a stack. */
export interface SearchPlace extends StackRef {
  readonly place: string | null;
  readonly key: string | null;
}

export type FoundItem = ReturnType<typeof foundItem>;

export interface SearchPage {
  readonly items: readonly FoundItem[];
  /** Where to go on; null at the end. */
  readonly next: SearchPlace | null;
  /** The search was cut short: there may be more before `next` is null, though the page is not full. */
  readonly isCut: boolean;
  /** There may be stacks that the caller may not read. */
  readonly isTrimmed: boolean;
}

export interface SearchGroup {
  readonly name: string;
  /** Of a provider. */
  readonly version: string | null;
  readonly resources: number;
  readonly stacks: number;
}

export interface SearchCounts {
  readonly resources: number;
  readonly groups: readonly SearchGroup[];
  /** How many groups there are besides. */
  readonly otherGroups: number;
  /** Counts are too low: the search was cut short. */
  readonly isCut: boolean;
  readonly isTrimmed: boolean;
}

export type SearchGroupField = GroupField | 'project';

/** A search took longer than a statement may. */
class SearchTooBroadError extends AppError {
  override readonly name = 'SearchTooBroadError';
  override readonly status = 422;
  override readonly code = 'search-too-broad';
}

/** Searches the index of the newest states of all stacks that the caller may read. */
export class SearchService {
  readonly #context: ApiContext;
  readonly #bounds: SearchBounds;
  readonly #turns = new CallerTurns(atOnce);

  constructor(context: ApiContext, bounds: SearchBounds = defaultBounds) {
    this.#context = context;
    this.#bounds = bounds;
  }

  /**
   * A page of the resources for which all terms hold: stacks in the order of their names, resources in that of type and name. Throws
   * SearchQueryError, NotFoundError.
   */
  async list(
    caller: Caller,
    query: {
      readonly text: string;
      readonly organization: string | null;
      readonly after: SearchPlace | null;
      readonly limit: number;
    },
  ): Promise<SearchPage> {
    const { after, limit } = query;
    const terms = parseSearchQuery(query.text);
    return this.#search(caller, query.organization, async (rows, organizations) => {
      const plan = await this.#plan(rows, terms);
      const budget = new Budget(this.#bounds);
      const found: { readonly row: FoundResource; readonly stack: WalkedStack }[] = [];
      const isTrimmed = await anyTrimmed(rows, organizations);
      const page = (next: SearchPlace | null, isCut: boolean): SearchPage => ({
        items: found.slice(0, limit).map(({ row, stack }) => foundItem(row, stack)),
        ...{ next, isCut, isTrimmed },
      });
      const from = after && { ref: after, isFrom: after.place !== null };
      for await (const batch of walkStacks(rows, { ...plan, organizations, after: from, firstResources })) {
        const { stacks, terms: ranged } = await narrow(rows, batch.stacks, plan.resourceTerms);
        const [first] = stacks;
        const place = first && after?.place != null && isSame(first, after) ? placeIn(after) : null;
        const ids = stacks.map(({ id }) => id);
        const listed = first ? await rows.list(ids, ranged, place, limit + 1 - found.length) : [];
        for (const row of listed) found.push({ row, stack: stacks[row.at - 1] as WalkedStack });
        const last = found[limit - 1];
        if (found.length > limit && last) {
          const { organization, project, stack } = last.stack;
          return page({ organization, project, stack, place: last.row.place, key: last.row.key }, false);
        }
        if (!budget.spend(batch.resources)) {
          const { organization, project, stack } = batch.stacks.at(-1) as WalkedStack;
          return page({ organization, project, stack, place: null, key: null }, true);
        }
      }
      return page(null, false);
    });
  }

  /** How many resources there are, by a field; the largest groups. Throws SearchQueryError, NotFoundError. */
  async count(
    caller: Caller,
    query: { readonly text: string; readonly organization: string | null; readonly by: SearchGroupField },
  ): Promise<SearchCounts> {
    const { by } = query;
    const terms = parseSearchQuery(query.text);
    return this.#search(caller, query.organization, async (rows, organizations) => {
      const plan = await this.#plan(rows, terms);
      return this.#count(rows, organizations, plan, async (stacks) => {
        const narrowed = await narrow(rows, stacks, plan.resourceTerms);
        if (narrowed.stacks.length === 0) return [];
        const counts = await rows.count(
          narrowed.stacks.map(({ id }) => id),
          narrowed.terms,
          by === 'project' ? 'stack' : by,
        );
        if (by === 'type') return counts;
        if (by === 'provider') return counts.map((row) => ({ ...row, name: packageOf(row.name) }));
        const names = new Map(
          narrowed.stacks.map(({ id, organization, project, stack }) => [
            id,
            by === 'project' ? `${organization}/${project}` : `${organization}/${project}/${stack}`,
          ]),
        );
        return counts.map((row) => ({ ...row, name: names.get(row.name) as string }));
      });
    });
  }

  /** Versions of providers: in how many stacks, and of how many resources. The newest of each first. Throws NotFoundError. */
  async providers(caller: Caller, organization: string | null): Promise<SearchCounts> {
    return this.#search(caller, organization, async (rows, organizations) => {
      const counts = await this.#count(rows, organizations, { within: null, terms: [] }, async (stacks) => {
        const found = await rows.countProviders(stacks.map(({ id }) => id));
        return found.map((row) => ({ ...row, name: packageOf(row.name) }));
      });
      const groups = [...counts.groups].sort(
        (a, b) =>
          (a.name < b.name ? -1 : Number(a.name > b.name)) || compareVersionTexts(b.version ?? '', a.version ?? ''),
      );
      return { ...counts, groups };
    });
  }

  async #count(
    rows: SearchRepository,
    organizations: readonly SearchedOrganization[],
    plan: { readonly within: readonly string[] | null; readonly terms: readonly StackTerm[] },
    countBatch: (stacks: readonly WalkedStack[]) => Promise<readonly SearchGroup[]>,
  ): Promise<SearchCounts> {
    const budget = new Budget(this.#bounds);
    const groups = new Map<string, { -readonly [Key in keyof SearchGroup]: SearchGroup[Key] }>();
    let resources = 0;
    let isCut = false;
    const isTrimmed = await anyTrimmed(rows, organizations);
    for await (const batch of walkStacks(rows, {
      ...plan,
      organizations,
      after: null,
      firstResources: 10 * firstResources,
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
      if (!budget.spend(batch.resources)) {
        isCut = true;
        break;
      }
    }
    const sorted = [...groups.values()].sort((a, b) => b.resources - a.resources || (a.name < b.name ? -1 : 1));
    const otherGroups = Math.max(0, sorted.length - maxGroups);
    return { resources, groups: sorted.slice(0, maxGroups), otherGroups, isCut, isTrimmed };
  }

  /** Which stacks to look at: conditions that few resources meet say so. */
  async #plan(rows: SearchRepository, terms: readonly Term[]) {
    const stackTerms: StackTerm[] = [];
    const resourceTerms: ResourceTerm[] = [];
    for (const { condition, isNegated } of terms) {
      if (condition.kind === 'stack' || condition.kind === 'tag') stackTerms.push({ condition, isNegated });
      else resourceTerms.push({ condition, isNegated });
      // Where nothing was changed lately, no resource was.
      if (condition.kind === 'changed' && !condition.isOlder && !isNegated) stackTerms.push({ condition, isNegated });
    }
    let within: readonly string[] | null = null as readonly string[] | null;
    for (const term of resourceTerms) {
      if (!isProbed(term) || (within !== null && within.length <= fewStacks)) continue;
      const found = await rows.probe(term.condition, maxProbed);
      if (found === null) continue;
      const known: ReadonlySet<string> | null = within && new Set(within);
      within = known ? found.filter((id) => known.has(id)) : found;
    }
    return { terms: stackTerms, resourceTerms, within };
  }

  async #search<T>(
    caller: Caller,
    organization: string | null,
    work: (rows: SearchRepository, organizations: readonly SearchedOrganization[]) => Promise<T>,
  ): Promise<T> {
    const { db } = this.#context;
    const organizations = await createStackListRepository(db).listOrganizations(caller.tokenId, {
      name: organization,
      from: null,
    });
    if (organization !== null && organizations.length === 0)
      throw new NotFoundError('Not found, or you are not a member of the organization');
    try {
      return await this.#turns.run(caller, () =>
        db.inTransaction(async (tx) => {
          const rows = createSearchRepository(tx);
          await rows.begin(statementMs);
          return work(rows, organizations);
        }),
      );
    } catch (error) {
      if (!isStatementTimeout(error)) throw error;
      throw new SearchTooBroadError('The search takes too long: add a type, a name or a project to it', {
        cause: error,
      });
    }
  }
}

/** What a search may still do. */
class Budget {
  readonly #until: number;
  #resources: number;

  constructor({ ms, resources }: SearchBounds) {
    this.#until = performance.now() + ms;
    this.#resources = resources;
  }

  /** Returns whether there is something left. */
  spend(resources: number): boolean {
    this.#resources -= resources;
    return this.#resources > 0 && performance.now() < this.#until;
  }
}

/** Whether an index leads to the resources for which the term holds. */
function isProbed({ condition, isNegated }: ResourceTerm): boolean {
  if (isNegated) return false;
  if (condition.kind === 'words') return true;
  if (condition.kind === 'flag') return condition.field === 'protect' && condition.value;
  if (condition.kind !== 'text') return false;
  const { field, pattern } = condition;
  if (field === 'urn') return pattern.includes('::') && !pattern.includes('*');
  return (field === 'type' || field === 'name') && !pattern.startsWith('*');
}

/** Those of the stacks whose providers have what the terms ask of providers, with the versions that are in the ranges of the terms. */
async function narrow(
  rows: SearchRepository,
  stacks: readonly WalkedStack[],
  terms: readonly ResourceTerm[],
): Promise<{ readonly stacks: readonly WalkedStack[]; readonly terms: readonly ResourceTerm[] }> {
  const isAboutProviders = ({ condition }: ResourceTerm) =>
    condition.kind === 'version' || (condition.kind === 'text' && condition.field === 'provider');
  if (!terms.some(isAboutProviders)) return { stacks, terms };
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

async function anyTrimmed(rows: SearchRepository, organizations: readonly SearchedOrganization[]): Promise<boolean> {
  for (const organization of organizations) if (await rows.isTrimmed(organization)) return true;
  return false;
}

function isSame(a: StackRef, b: StackRef): boolean {
  return a.organization === b.organization && a.project === b.project && a.stack === b.stack;
}

function packageOf(type: string): string {
  return type.startsWith(providerPrefix) ? type.slice(providerPrefix.length) : type;
}

function placeIn({ key, place }: SearchPlace): { readonly place: string; readonly key: string } | null {
  return place === null || key === null ? null : { place, key };
}

function foundItem(row: FoundResource, { organization, project, stack }: WalkedStack) {
  const { at: _at, changedAt, key: _key, place: _place, provider, providerUrn, ...resource } = row;
  const type = provider ?? (row.type.startsWith(providerPrefix) ? row.type : null);
  return {
    ...{ organization, project, stack },
    ...resource,
    provider: type && packageOf(type),
    providerUrn,
    changedAt: changedAt?.toISOString() ?? null,
  };
}
