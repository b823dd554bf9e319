import type { AppContext } from '../../shared/context.ts';
import { checkSite } from '../../shared/platform/site/site-watch.ts';
import { findStoreOwner, ownsStore } from '../../shared/state/blobs/store-ownership.ts';

/** Objects that are deleted before the next look at whose the store is. */
export const deletesPerLook = 16;

/** What decides whether this process may delete from the store. */
export type DeletionParts = Pick<AppContext, 'blobs' | 'db' | 'logger' | 'readOnly' | 'recordReplaced' | 'siteStores'>;

/**
 * Whether deletions may begin, and why not. The site comes last: the first question may put its answer over that of a database that has
 * just taken over.
 */
export async function findDeletionBar(parts: DeletionParts): Promise<'another copy' | 'another site' | null> {
  if (!(await ownsStore(parts))) return 'another copy';
  return (await checkSite(parts)) ? null : 'another site';
}

/** Whether they may go on: this process may have been frozen, and a restored database may have taken over since, and put objects back. */
export async function mayGoOnDeleting({ blobs, db }: Pick<DeletionParts, 'blobs' | 'db'>): Promise<boolean> {
  return (await findStoreOwner({ blobs, db })) === 'this database';
}
