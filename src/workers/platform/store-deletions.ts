import type { AppContext } from '../../shared/context.ts';
import { checkSite } from '../../shared/platform/site/site-watch.ts';
import { findStoreOwner, ownsStore } from '../../shared/state/blobs/store-ownership.ts';

/** Deletions before the owner of the store is checked again. */
export const deletesPerLook = 16;

export type DeletionParts = Pick<AppContext, 'blobs' | 'db' | 'logger' | 'readOnly' | 'recordReplaced' | 'siteStores'>;

/**
 * Null if deletions may begin. The site is checked last: the ownership check may overwrite the mark of a database that has just taken over.
 */
export async function findDeletionBar(parts: DeletionParts): Promise<'another copy' | 'another site' | null> {
  if (!(await ownsStore(parts))) return 'another copy';
  return (await checkSite(parts)) ? null : 'another site';
}

/** If this process was frozen, a restored database may have taken over since, and put objects back. */
export async function mayGoOnDeleting({ blobs, db }: Pick<DeletionParts, 'blobs' | 'db'>): Promise<boolean> {
  return (await findStoreOwner({ blobs, db })) === 'this database';
}
