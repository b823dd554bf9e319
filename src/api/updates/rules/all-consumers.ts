import { readWithin } from '../../../shared/platform/db/read-within.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { type Consumer, createConsumerRepository } from '../../../shared/updates/rules/consumer-repository.ts';

/** More are not looked up. */
export const maxConsumers = 200;
/** Of each of two statements. A call has more to do than to tell who reads what it removes. */
const readMs = 1_000;

/** Stacks with a reference to another one. */
export interface AllConsumers {
  /** In its organization, sorted by name. */
  readonly own: readonly Consumer[];
  /** With those in others: at most `maxConsumers`. */
  readonly count: number;
}

/** For warnings and notifications, which must neither fail nor delay the change that they are about; null if they are not found at once. */
export function findAllConsumers(db: Queryable, ref: StackRef): Promise<AllConsumers | null> {
  return readWithin(db, readMs, async (tx) => {
    const consumers = createConsumerRepository(tx);
    const own = await consumers.listOwn(ref, maxConsumers);
    const left = maxConsumers - own.length;
    return { own, count: own.length + (left > 0 ? await consumers.countOthers(ref, left) : 0) };
  });
}
