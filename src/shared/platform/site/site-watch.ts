import type { Database } from '../db/database.ts';
import type { Queryable } from '../db/sql.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import { repeat } from '../lifecycle/repeat.ts';
import type { Logger } from '../logger/logger.ts';
import { fencedBy, type ReadOnlyMode } from '../read-only/read-only-mode.ts';
import { isForeign, readMarks, type SiteStore, writeMark } from './site-mark.ts';
import { createSiteRepository } from './site-repository.ts';

interface Parts {
  readonly db: Database;
  readonly logger: Logger;
  readonly readOnly: ReadOnlyMode;
  readonly siteStores: readonly SiteStore[];
  /** Records, in the transaction, that another site has taken over. */
  readonly recordReplaced: (tx: Queryable, details: Readonly<Record<string, unknown>>) => Promise<unknown>;
}

const checkEveryMs = 5_000;

/**
 * Checks now, and then every five seconds. If another site was promoted, this site refuses all writes, including those of running updates,
 * until an operator promotes it.
 */
export async function startSiteWatch(parts: Parts & { readonly lifecycle: Lifecycle }): Promise<void> {
  const { lifecycle, logger } = parts;
  await checkSite(parts);
  const checks = repeat(
    checkEveryMs,
    () => checkSite(parts),
    (error) => logger.debug({ err: error }, 'the site could not be checked'),
  );
  lifecycle.onClose('work', 'site watch', checks.stop);
}

/** Makes only this process read-only if another site was promoted. */
export async function noticeOtherSite({
  db,
  readOnly,
  siteStores,
}: Pick<Parts, 'db' | 'readOnly' | 'siteStores'>): Promise<void> {
  const own = await createSiteRepository(db).read();
  const isReplaced =
    own.fencedSince !== null ||
    (await readMarks(siteStores, own.installation)).some(({ mark }) => isForeign(own, mark));
  if (isReplaced) readOnly.remember(fencedBy(own.fencedSince ?? new Date()));
}

/**
 * Returns false if another site was promoted. A store that cannot be read does not count. Writes the mark of this site to stores that lack
 * it, e.g. because they were away during the promotion.
 */
export async function checkSite({ db, logger, readOnly, recordReplaced, siteStores }: Parts): Promise<boolean> {
  const sites = createSiteRepository(db);
  const own = await sites.read();
  const { fencedSince, id, installation, term } = own;
  if (fencedSince) {
    readOnly.remember(fencedBy(fencedSince));
    return false;
  }
  const marks = await readMarks(siteStores, installation);
  const foreign = marks.find(({ mark }) => isForeign(own, mark));
  if (foreign) {
    const isNoted = await db.inTransaction(async (tx) => {
      if (!(await createSiteRepository(tx).fence(own))) return false;
      await recordReplaced(tx, { term, by: foreign.mark?.term });
      return true;
    });
    const now = await sites.read();
    // This site was promoted meanwhile, so the mark may be its own.
    if (!now.fencedSince) return true;
    readOnly.remember(fencedBy(now.fencedSince));
    if (isNoted)
      logger.error(
        { store: foreign.name, term: foreign.mark?.term, ownTerm: term },
        'another site has taken over: all writes are refused; if this site is the right one, run `holdfast admin site promote`',
      );
    return false;
  }
  if (id !== null) {
    const behind = siteStores.filter(({ name }) =>
      marks.some((each) => each.name === name && each.error === null && each.mark?.id !== id),
    );
    if (behind.length > 0) await writeMark(behind, installation, { term, id });
  }
  return true;
}
