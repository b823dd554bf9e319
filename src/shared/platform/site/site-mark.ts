import { randomUUID } from 'node:crypto';
import { BlobNotFoundError, type BlobStore } from '../blobs/blob-store.ts';
import { once } from '../blobs/blob-streams.ts';
import type { Queryable } from '../db/sql.ts';
import { OperatorError } from '../errors/errors.ts';
import { createSiteRepository, type Site } from './site-repository.ts';

/** The store has the mark of the site that was promoted last. */
export interface SiteStore {
  readonly name: 'main' | 'second';
  readonly store: BlobStore;
}

/** The site with the highest term writes. */
export interface SiteMark {
  readonly term: number;
  readonly id: string;
}

/** A null `mark` means that no site was promoted. */
export type StoreMark = { readonly name: SiteStore['name'] } & (
  | { readonly mark: SiteMark | null; readonly error: null }
  | { readonly mark: null; readonly error: unknown }
);

class SiteError extends OperatorError {
  override readonly name = 'SiteError';
}

/** The limit for reading the mark of one store. */
const markTimeoutMs = 5_000;

const rule = /^(\d{1,9}) ([0-9a-f-]{36})\n?$/;

const markKey = (installation: string): string => `sites/${installation}`;

/** A store that cannot be read is no information about the site. */
export function readMarks(stores: readonly SiteStore[], installation: string): Promise<StoreMark[]> {
  return Promise.all(
    stores.map(async ({ name, store }): Promise<StoreMark> => {
      try {
        return { name, mark: await readMark(store, markKey(installation)), error: null };
      } catch (error) {
        return { name, mark: null, error };
      }
    }),
  );
}

/** Whether the mark's site was promoted after this one, or at the same time and won. */
export function isForeign({ id, term }: Pick<Site, 'id' | 'term'>, mark: SiteMark | null): boolean {
  return mark !== null && (mark.term > term || (mark.term === term && mark.id !== id));
}

/** Returns the names of the stores that failed. */
export async function writeMark(
  stores: readonly SiteStore[],
  installation: string,
  { id, term }: SiteMark,
): Promise<string[]> {
  const text = Buffer.from(`${term} ${id}\n`);
  const written = await Promise.allSettled(
    stores.map(({ store }) =>
      store.put(markKey(installation), once(text), { signal: AbortSignal.timeout(markTimeoutMs) }),
    ),
  );
  return stores.flatMap(({ name }, index) => (written[index]?.status === 'rejected' ? [name] : []));
}

/**
 * Promotes this database's site: first the stores get its mark, then the database. The watch of the servers later writes the mark to stores
 * that failed, which are `lacking`.
 */
export async function claimSite(
  db: Queryable,
  stores: readonly SiteStore[],
): Promise<{ readonly term: number; readonly lacking: readonly string[] }> {
  const sites = createSiteRepository(db);
  const own = await sites.read();
  const marks = await readMarks(stores, own.installation);
  const next = { term: Math.max(own.term, ...marks.map(({ mark }) => mark?.term ?? 0)) + 1, id: randomUUID() };
  const lacking = await writeMark(stores, own.installation, next);
  if (lacking.length === stores.length)
    throw new SiteError('No blob store can be written, so the other site would not learn of the promotion. Try again', {
      cause: marks.find(({ error }) => error !== null)?.error,
    });
  if (!(await sites.claim(next))) throw new SiteError('Another command has just promoted this site');
  return { term: next.term, lacking };
}

async function readMark(store: BlobStore, key: string): Promise<SiteMark | null> {
  const signal = AbortSignal.timeout(markTimeoutMs);
  let text: string;
  try {
    text = Buffer.concat(await Array.fromAsync(await store.open(key, { signal }))).toString();
  } catch (error) {
    if (error instanceof BlobNotFoundError) return null;
    throw error;
  }
  const [, term, id] = rule.exec(text) ?? [];
  if (term === undefined || id === undefined) throw new SiteError(`The object ${key} is not a mark of a site`);
  return { term: Number(term), id };
}
