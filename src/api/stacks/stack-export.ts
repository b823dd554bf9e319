import { maxTags } from '../../shared/stacks/tags.ts';
import type { Caller } from '../platform/http/request.ts';
import {
  cardOf,
  type OverviewPosition,
  type OverviewQuery,
  type StackCard,
  type StackQueries,
} from './stack-queries.ts';

const pageSize = 200;
/** A change may be committed this much later than changes with a later time: longer than any transaction. */
const overlapMicros = 120_000_000n;

/**
 * Each matching stack once, page by page. A stack that changes meanwhile moves to the top of the list, so the changed part is read again
 * until it contains nothing new. Throws SearchQueryError.
 */
export async function* exportStacks(
  queries: StackQueries,
  caller: Caller,
  query: Omit<OverviewQuery, 'before' | 'limit'>,
): AsyncGenerator<readonly StackCard[]> {
  const read = new Set<string>();
  /** The time from which the list is completely known; null: no part is known. */
  let since: bigint | null = null;
  const isOpen = ({ changedAt }: OverviewPosition): boolean => since === null || BigInt(changedAt) >= since;
  for (let isComplete = false; !isComplete; ) {
    isComplete = true;
    let newest: bigint | null = null;
    let before: OverviewPosition | null = null;
    do {
      const page = await queries.listRows(caller, { ...query, before, limit: pageSize }, maxTags);
      const fresh = page.rows.filter((row) => isOpen(row) && !read.has(row.id));
      for (const { id } of fresh) read.add(id);
      if (fresh.length > 0) yield fresh.map(cardOf);
      // A page is a single view of the list, so no stack can move past it.
      isComplete &&= fresh.length === 0 || (before === null && page.next === null);
      newest ??= BigInt(page.rows[0]?.changedAt ?? 0) - overlapMicros;
      before = page.next !== null && isOpen(page.next) ? page.next : null;
    } while (before !== null);
    since = newest;
  }
}
