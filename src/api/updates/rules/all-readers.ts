import { readWithin } from '../../../shared/platform/db/read-within.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { createReaderRepository, type Reader } from '../../../shared/updates/rules/reader-repository.ts';

/** More are not looked up. */
export const maxReaders = 200;
/** Of each of two statements. A call has more to do than to tell who reads what it removes. */
const readMs = 1_000;

/** Stacks with a reference to another one. */
export interface AllReaders {
  /** In its organization, sorted by name. */
  readonly own: readonly Reader[];
  /** With those in others: at most `maxReaders`. */
  readonly count: number;
}

/** For warnings and notifications, which must neither fail nor delay the change that they are about; null if they are not found at once. */
export function findAllReaders(db: Queryable, ref: StackRef): Promise<AllReaders | null> {
  return readWithin(db, readMs, async (tx) => {
    const readers = createReaderRepository(tx);
    const own = await readers.listOwn(ref, maxReaders);
    const left = maxReaders - own.length;
    return { own, count: own.length + (left > 0 ? await readers.countOthers(ref, left) : 0) };
  });
}
