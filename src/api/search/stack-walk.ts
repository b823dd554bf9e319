import type { StackRef } from '../../shared/stacks/names.ts';
import type { SearchedOrganization, SearchedStack, SearchRepository } from './search-repository.ts';
import type { StackTerm } from './search-terms.ts';

export interface WalkedStack extends StackRef {
  readonly id: string;
}

/** Consecutive stacks in the order of names, and the number of their resources. */
export interface StackBatch {
  readonly stacks: readonly WalkedStack[];
  readonly resources: number;
}

export interface Walk {
  /** In the order of names. */
  readonly organizations: readonly SearchedOrganization[];
  readonly terms: readonly StackTerm[];
  /** Only these stacks; null: all. */
  readonly within: readonly string[] | null;
  /** `isFrom`: including that stack. */
  readonly after: { readonly ref: StackRef; readonly isFrom: boolean } | null;
  /** Size of the first batch, unless a single stack has more; later batches grow. */
  readonly firstResources: number;
}

const stacksPerPage = 1_000;
const maxStacks = 500;
const maxResources = 50_000;

/** Batches of about the same cost, so that a scan can stop in time and report its position. */
export async function* walkStacks(rows: SearchRepository, walk: Walk): AsyncGenerator<StackBatch, void> {
  const { after, organizations, terms, within } = walk;
  let target = walk.firstResources;
  // In the database's order of names; an organization that the caller has left counts as first.
  const begun = organizations.findIndex(({ name }) => name === after?.ref.organization);
  for (const organization of organizations.slice(Math.max(0, begun))) {
    const { name } = organization;
    let position = after?.ref.organization === name ? { ...after.ref, isFrom: after.isFrom } : null;
    let page: readonly SearchedStack[];
    do {
      page = await rows.listStacks({ organization, terms, within, after: position, limit: stacksPerPage });
      let batch: WalkedStack[] = [];
      let resources = 0;
      for (const row of page) {
        if (batch.length > 0 && (resources + row.resources > target || batch.length === maxStacks)) {
          yield { stacks: batch, resources };
          target = Math.min(maxResources, target * 4);
          batch = [];
          resources = 0;
        }
        batch.push({ id: row.id, organization: name, project: row.project, stack: row.stack });
        resources += row.resources;
      }
      if (batch.length > 0) yield { stacks: batch, resources };
      const last = page.at(-1);
      if (last) position = { organization: name, project: last.project, stack: last.stack, isFrom: false };
    } while (page.length === stacksPerPage);
  }
}
