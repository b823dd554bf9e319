import { isStatementTimeout } from '../../shared/platform/db/sqlstate.ts';
import { AppError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { createDueIndexRepository, type IndexLag } from '../../shared/search/due-index-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import { FairSemaphore } from '../platform/admission/fair-semaphore.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { type FoundItem, foundItem, packageOf } from './found-item.ts';
import { defaultBounds, type SearchBounds, SearchBudget } from './search-budget.ts';
import { countGroups, type SearchCounts, type SearchGroup } from './search-groups.ts';
import { narrow, planSearch, type SearchPlan } from './search-plan.ts';
import { parseSearchQuery } from './search-query.ts';
import {
  createSearchRepository,
  type FoundResource,
  type GroupField,
  type SearchedOrganization,
  type SearchRepository,
} from './search-repository.ts';
import { type WalkedStack, walkStacks } from './stack-walk.ts';
import { compareVersionTexts } from './version-range.ts';

/** Longer statements fail. */
const statementMs = 5_000;
/** Concurrent searches in one process: other calls also need connections to Postgres. */
const atOnce = 3;
const firstResources = 5_000;

/** Without `place` and `key`: after a whole stack. */
export interface SearchCursor extends StackRef {
  readonly place: string | null;
  readonly key: string | null;
}

export interface SearchPage {
  readonly items: readonly FoundItem[];
  /** Null at the end. */
  readonly next: SearchCursor | null;
  /** The search was cut short: if `next` is not null, there may be more results, though the page is not full. */
  readonly isCut: boolean;
  /** There may be stacks that the caller may not read. */
  readonly isTrimmed: boolean;
}

export interface FromIndex {
  /** The lag in the searched organizations. */
  readonly behind: IndexLag | null;
}

export type SearchGroupField = GroupField | 'project';

class SearchTooBroadError extends AppError {
  override readonly name = 'SearchTooBroadError';
  override readonly status = 422;
  override readonly code = 'search-too-broad';
}

/** The newest states of all stacks that the caller may read. */
export class SearchService {
  readonly #context: ApiContext;
  readonly #bounds: SearchBounds;
  readonly #semaphore = new FairSemaphore({ atOnce });

  constructor(context: ApiContext, bounds: SearchBounds = defaultBounds) {
    this.#context = context;
    this.#bounds = bounds;
  }

  /** Stacks are sorted by name, resources by type and name. Throws SearchQueryError. */
  async list(
    caller: Caller,
    query: {
      readonly text: string;
      readonly organization: string | null;
      readonly after: SearchCursor | null;
      readonly limit: number;
    },
    gone: AbortSignal | null = null,
  ): Promise<SearchPage & FromIndex> {
    const { after, limit } = query;
    const terms = parseSearchQuery(query.text);
    return this.#search({ caller, gone }, query.organization, async (rows, organizations) => {
      const plan = await planSearch(rows, terms);
      const budget = new SearchBudget(this.#bounds, gone);
      const found: { readonly row: FoundResource; readonly stack: WalkedStack }[] = [];
      const isTrimmed = await anyTrimmed(rows, organizations);
      const page = (next: SearchCursor | null, isCut: boolean): SearchPage => ({
        items: found.slice(0, limit).map(({ row, stack }) => foundItem(row, stack)),
        ...{ next, isCut, isTrimmed },
      });
      const from = after && { ref: after, isFrom: after.place !== null };
      for await (const batch of walkStacks(rows, { ...plan, organizations, after: from, firstResources })) {
        const { stacks, terms: ranged } = await narrow(rows, batch.stacks, plan.resourceTerms);
        const [first] = stacks;
        const position = first && after?.place != null && isSame(first, after) ? positionIn(after) : null;
        const ids = stacks.map(({ id }) => id);
        const listed = first ? await rows.list(ids, ranged, position, limit + 1 - found.length) : [];
        for (const row of listed) found.push({ row, stack: stacks[row.at - 1] as WalkedStack });
        const last = found[limit - 1];
        if (found.length > limit && last) {
          const { organization, project, stack } = last.stack;
          return page({ organization, project, stack, place: last.row.place, key: last.row.key }, false);
        }
        if (!budget.spend(batch)) {
          const { organization, project, stack } = batch.stacks.at(-1) as WalkedStack;
          return page({ organization, project, stack, place: null, key: null }, true);
        }
      }
      return page(null, false);
    });
  }

  /** The largest groups. Throws SearchQueryError. */
  async count(
    caller: Caller,
    query: { readonly text: string; readonly organization: string | null; readonly by: SearchGroupField },
    gone: AbortSignal | null = null,
  ): Promise<SearchCounts & FromIndex> {
    const { by } = query;
    const terms = parseSearchQuery(query.text);
    return this.#search({ caller, gone }, query.organization, async (rows, organizations) => {
      const plan = await planSearch(rows, terms);
      const { counted, ms } = this.#bounds;
      const budget = new SearchBudget({ ms, resources: counted }, gone);
      return this.#count(rows, organizations, { ...plan, budget }, async (stacks) => {
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

  /** The newest version of each provider first. */
  async providers(
    caller: Caller,
    organization: string | null,
    gone: AbortSignal | null = null,
  ): Promise<SearchCounts & FromIndex> {
    return this.#search({ caller, gone }, organization, async (rows, organizations) => {
      const budget = new SearchBudget(this.#bounds, gone);
      const counts = await this.#count(rows, organizations, { within: null, terms: [], budget }, async (stacks) => {
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
    plan: Pick<SearchPlan, 'terms' | 'within'> & { readonly budget: SearchBudget },
    countBatch: (stacks: readonly WalkedStack[]) => Promise<readonly SearchGroup[]>,
  ): Promise<SearchCounts> {
    return countGroups(rows, organizations, { ...plan, isTrimmed: await anyTrimmed(rows, organizations) }, countBatch);
  }

  /** `gone`: aborted when the client is gone. */
  async #search<T extends object>(
    { caller, gone }: { readonly caller: Caller; readonly gone: AbortSignal | null },
    organization: string | null,
    work: (rows: SearchRepository, organizations: readonly SearchedOrganization[]) => Promise<T>,
  ): Promise<T & FromIndex> {
    const { db } = this.#context;
    const organizations = await createStackListRepository(db).listOrganizations(caller.tokenId, {
      name: organization,
      from: null,
    });
    if (organization !== null && organizations.length === 0)
      throw new NotFoundError('Not found, or you are not a member of the organization');
    const [only, ...others] = organizations;
    const { tokenId, userId } = caller;
    try {
      return await this.#semaphore.run(
        { tokenId, userId, ...(others.length === 0 && { organization: only?.name }) },
        gone,
        () =>
          db.inTransaction(async (tx) => {
            const rows = createSearchRepository(tx);
            await rows.begin(statementMs);
            const behind = await createDueIndexRepository(tx).readLag(organizations);
            return { ...(await work(rows, organizations)), behind };
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

async function anyTrimmed(rows: SearchRepository, organizations: readonly SearchedOrganization[]): Promise<boolean> {
  for (const organization of organizations) if (await rows.isTrimmed(organization)) return true;
  return false;
}

function isSame(a: StackRef, b: StackRef): boolean {
  return a.organization === b.organization && a.project === b.project && a.stack === b.stack;
}

function positionIn({ key, place }: SearchCursor): { readonly place: string; readonly key: string } | null {
  return place === null || key === null ? null : { place, key };
}
