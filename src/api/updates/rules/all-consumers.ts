import { readWithin } from '../../../shared/platform/db/read-within.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { type Consumer, createConsumerRepository } from '../../../shared/updates/rules/consumer-repository.ts';

export const maxConsumers = 200;
/** The time limit of each of the two statements: consumers are only a small part of the work of a call. */
const readMs = 1_000;

export interface AllConsumers {
  /** Those in the stack's organization, sorted by name. */
  readonly own: readonly Consumer[];
  /** Consumers in all organizations: at most `maxConsumers`. */
  readonly count: number;
}

/** Finds consumers for warnings and notifications, which must neither fail nor delay the change. Null if the search takes too long. */
export function findAllConsumers(db: Queryable, ref: StackRef): Promise<AllConsumers | null> {
  return readWithin(db, readMs, async (tx) => {
    const consumers = createConsumerRepository(tx);
    const own = await consumers.listOwn(ref, maxConsumers);
    const left = maxConsumers - own.length;
    return { own, count: own.length + (left > 0 ? await consumers.countOthers(ref, left) : 0) };
  });
}
