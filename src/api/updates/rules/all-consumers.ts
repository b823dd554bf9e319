import { readWithin } from '../../../shared/platform/db/read-within.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { type Consumer, createConsumerRepository } from '../../../shared/updates/rules/consumer-repository.ts';

/** Maximum number of consumers to look up. */
export const maxConsumers = 200;
/** Time limit of each of the two statements, in ms: the list of consumers is only a small part of the work of a call. */
const readMs = 1_000;

/** Stacks with a reference to another one. */
export interface AllConsumers {
  /** Consumers in the stack's organization, sorted by name. */
  readonly own: readonly Consumer[];
  /** Number of consumers in all organizations: at most `maxConsumers`. */
  readonly count: number;
}

/**
 * Finds the consumers of a stack for warnings and notifications, which must neither fail nor delay the change. Null if the search takes too
 * long.
 */
export function findAllConsumers(db: Queryable, ref: StackRef): Promise<AllConsumers | null> {
  return readWithin(db, readMs, async (tx) => {
    const consumers = createConsumerRepository(tx);
    const own = await consumers.listOwn(ref, maxConsumers);
    const left = maxConsumers - own.length;
    return { own, count: own.length + (left > 0 ? await consumers.countOthers(ref, left) : 0) };
  });
}
