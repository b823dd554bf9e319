import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import {
  createStateIndexRepository,
  type UnindexedStack,
} from '../../../shared/search/index/state-index-repository.ts';

/** Some times as long as it takes to index a state that was just saved. */
const waitMs = 10_000;
const pollMs = 250;
const maxStacks = 200;

/**
 * Waits, for 10 s at most, until the index shows what the other stacks of the organization had saved before the call. Returns the stacks of
 * which it does not.
 */
export async function awaitIndex(
  db: Queryable,
  stack: { readonly id: string; readonly organization: string },
): Promise<readonly UnindexedStack[]> {
  const rows = createStateIndexRepository(db);
  const deadline = performance.now() + waitMs;
  const keyOf = ({ notedAt, stackId }: UnindexedStack): string => `${stackId} ${notedAt}`;
  let left = await rows.listUnindexed(stack, maxStacks);
  const before = new Set(left.map(keyOf));
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(pollMs);
    left = (await rows.listUnindexed(stack, maxStacks)).filter((each) => before.has(keyOf(each)));
  }
  return left;
}
