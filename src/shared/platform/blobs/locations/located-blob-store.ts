import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../config/config.ts';
import {
  BlobNotFoundError,
  type BlobPage,
  type BlobRange,
  type BlobStore,
  BlobStoreUnavailableError,
} from '../blob-store.ts';
import { openBlobStore } from '../blob-stores.ts';
import { ListingEndedError, markCursor, readCursor } from '../listing-cursor.ts';
import type { BlobLocation, BlobLocationRepository, BlobLocations } from './blob-location-repository.ts';
import { formatLocation, parseLocation } from './location-url.ts';

/** Identifies the location of a store. */
export const locationKey = (id: string): string => `places/${id}`;

/** Maximum age of the known locations for a read. A read that finds nothing asks the database again. */
const maxAgeMs = 1_000;

interface Known {
  readonly row: BlobLocations | null;
  /** Null is the store of the settings. */
  readonly main: BlobLocation | null;
  readonly other: BlobLocation | null;
}

interface LocatedStoreParts {
  readonly locations: Pick<BlobLocationRepository, 'find' | 'noteFault'>;
  /** The store of the settings. */
  readonly own: BlobStore;
  readonly config: Config['blobs'];
  /** Opens the other locations without preparing them. */
  readonly isPrepared?: boolean;
}

/**
 * The database names the location. During a move, a blob is written to both locations and read from the one that has it. Processes learn of
 * a move at different times. Therefore, a write asks the database after the upload, and ensures that every required location has the blob
 * before the call returns.
 */
export class LocatedBlobStore implements BlobStore {
  readonly #locations: LocatedStoreParts['locations'];
  readonly #own: BlobStore;
  readonly #config: Config['blobs'];
  readonly #isPrepared: boolean;
  readonly #opened = new Map<string, Promise<BlobStore>>();
  #known: { readonly at: number; readonly locations: Known } | null = null;
  #asking: Promise<Known> | null = null;

  constructor({ config, isPrepared = false, own, locations }: LocatedStoreParts) {
    this.#isPrepared = isPrepared;
    this.#locations = locations;
    this.#own = own;
    this.#config = config;
  }

  async put(
    key: string,
    body: AsyncIterable<Buffer>,
    options?: { signal?: AbortSignal },
  ): Promise<{ storedBytes: number }> {
    const first = await this.storeOf((await this.#recent()).main);
    const stored = await first.put(key, body, options);
    const present = new Set<BlobStore>([first]);
    for (;;) {
      const { main, other, row } = await this.#ask();
      let isComplete = true;
      for (const location of row?.phase === 'copying' ? [main, other] : [main]) {
        const store = await this.#orNull(location, location === main);
        if (store && present.has(store)) continue;
        try {
          if (!store)
            throw new BlobStoreUnavailableError('misconfigured', 'the other location of the blobs cannot be reached');
          await copyAgain(first, store, key);
          present.add(store);
          isComplete = false;
        } catch (error) {
          // The move can wait for the other location; the write cannot. If the other location has become the main one, the write fails.
          if (location === main || row === null) throw error;
          if (!(await this.#locations.noteFault(row.generation))) isComplete = false;
        }
      }
      if (isComplete) return stored;
    }
  }

  async open(key: string, options: { signal?: AbortSignal; range?: BlobRange } = {}): Promise<AsyncIterable<Buffer>> {
    const found = await this.#find(async (store) => {
      try {
        return await store.open(key, options);
      } catch (error) {
        if (error instanceof BlobNotFoundError) return null;
        throw error;
      }
    });
    if (found === null) throw new BlobNotFoundError(key);
    return found;
  }

  stat(key: string): Promise<{ storedBytes: number; modifiedAt: Date } | null> {
    return this.#find((store) => store.stat(key));
  }

  async delete(key: string): Promise<void> {
    for (const store of await this.#written()) await store.delete(key);
  }

  /** All pages come from the location of the first page, because each location has its own order. */
  async list(prefix: string, after?: string): Promise<BlobPage> {
    const { main, other, row } = await this.#ask();
    if (after === undefined) return this.#listLocation(main, prefix);
    const { store, after: from } = readCursor(after);
    // The listing of the settings' store is older than the move.
    const isSame = store === (main?.id ?? null) || (store === null && row?.phase === 'copying');
    const location = isSame
      ? main
      : store !== null && other?.id === store && row?.phase === 'switched'
        ? other
        : undefined;
    if (location === undefined) throw new ListingEndedError();
    return this.#listLocation(location, prefix, from);
  }

  async #listLocation(location: BlobLocation | null, prefix: string, after?: string): Promise<BlobPage> {
    const { blobs, next } = await (await this.storeOf(location)).list(prefix, after);
    return { blobs, next: location ? markCursor(next, location.id) : next };
  }

  async findAbsent(keys: readonly string[]): Promise<string[]> {
    let absent: readonly string[] = keys;
    await this.#find(async (store) => {
      if (absent.length > 0) absent = await store.findAbsent(absent);
      return absent.length === 0 ? true : null;
    });
    return [...absent];
  }

  async sweepUnfinished(olderThanMs: number, prefixes: readonly string[]): Promise<number> {
    let swept = 0;
    for (const store of await this.#written()) swept += await store.sweepUnfinished(olderThanMs, prefixes);
    return swept;
  }

  async check(timeoutMs: number): Promise<void> {
    // Does not need the database, whose own check fails if it is down.
    const main = this.#known?.locations.main ?? null;
    await (await this.storeOf(main)).check(timeoutMs);
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#opened.values());
    const stores = opened.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    await Promise.all([...new Set([this.#own, ...stores])].map((store) => store.close()));
  }

  /** Asks the database now. Null if the settings name the location. */
  async read(): Promise<BlobLocations | null> {
    return (await this.#ask()).row;
  }

  /** Returns the stores that may have a blob; the first has all. `isWritten` is false for a store that was left. */
  async stores(): Promise<readonly { readonly store: BlobStore; readonly isWritten: boolean }[]> {
    const { main, other, row } = await this.#ask();
    const first = { store: await this.storeOf(main), isWritten: true };
    return other ? [first, { store: await this.storeOf(other), isWritten: row?.phase === 'copying' }] : [first];
  }

  /** Null is the store of the settings. Throws BlobStoreUnavailableError, also if the location contains another store. */
  async storeOf(location: BlobLocation | null): Promise<BlobStore> {
    if (location === null) return this.#own;
    let opening = this.#opened.get(location.id);
    if (!opening) {
      opening = this.#openLocation(location);
      this.#opened.set(location.id, opening);
      opening.catch(() => this.#opened.delete(location.id));
    }
    return opening;
  }

  async #openLocation({ id, url }: BlobLocation): Promise<BlobStore> {
    if (await this.#isOwn({ id, url })) return this.#own;
    const config = parseLocation(url, this.#config);
    const elsewhere = (): BlobStoreUnavailableError =>
      new BlobStoreUnavailableError(
        'misconfigured',
        `the blobs are at ${url}, and this process does not find them there`,
      );
    // Opening a folder would create it. On another machine, it must not look like a store.
    if (config.kind === 'files' && !existsSync(path.join(config.directory, 'blobs'))) throw elsewhere();
    const store = await openBlobStore(config, { isPrepared: this.#isPrepared });
    try {
      if ((await store.stat(locationKey(id))) === null) throw elsewhere();
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** The settings may reach the location in another way, e.g. with other credentials or another path. */
  async #isOwn({ id, url }: BlobLocation): Promise<boolean> {
    const has = async (mark: string) => (await this.#own.stat(locationKey(mark)).catch(() => null)) !== null;
    if (!(await has(id))) return false;
    if (formatLocation(this.#config) === url) return true;
    const { main, other } = this.#known?.locations ?? {};
    const rival = main?.id === id ? other : main;
    // Other tools copy marks, too.
    return !rival || !(await has(rival.id));
  }

  /** Blobs are deleted from these stores. */
  async #written(): Promise<BlobStore[]> {
    const { main, other, row } = await this.#recent();
    const stores = [await this.storeOf(main)];
    if (row?.phase === 'copying') stores.push(await this.storeOf(other));
    return stores;
  }

  /**
   * Tries the known main location, then those that the database names. The main location has all blobs, so only it can decide that a blob
   * does not exist. The other location serves reads while the main one fails.
   */
  async #find<T>(run: (store: BlobStore) => Promise<T | null>): Promise<T | null> {
    const tried = new Set<BlobStore>();
    const faults: unknown[] = [];
    const attempt = async (location: BlobLocation | null, decides: boolean): Promise<T | null> => {
      try {
        const store = await this.storeOf(location);
        if (tried.has(store)) return null;
        tried.add(store);
        return await run(store);
      } catch (error) {
        if (!(error instanceof BlobStoreUnavailableError)) throw error;
        if (decides) faults.push(error);
        return null;
      }
    };
    const before = (await this.#recent()).main;
    const found = await attempt(before, true);
    if (found !== null) return found;
    const { main, other } = await this.#ask();
    // Errors of a location that has been left since then do not count.
    if (main?.id !== before?.id) faults.length = 0;
    const elsewhere = (await attempt(main, true)) ?? (other && (await attempt(other, false)));
    if (elsewhere === null && faults.length > 0) throw faults[0];
    return elsewhere;
  }

  async #orNull(location: BlobLocation | null, isMain: boolean): Promise<BlobStore | null> {
    try {
      return await this.storeOf(location);
    } catch (error) {
      if (isMain) throw error;
      return null;
    }
  }

  async #recent(): Promise<Known> {
    if (this.#known && performance.now() - this.#known.at < maxAgeMs) return this.#known.locations;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    // Reads continue with the known locations while the database is down.
    return this.#asking.catch((error: unknown) => {
      if (this.#known) return this.#known.locations;
      throw error;
    });
  }

  async #ask(): Promise<Known> {
    const at = performance.now();
    const row = await this.#locations.find();
    const locations: Known = {
      row,
      main: row && { id: row.mainId, url: row.mainUrl },
      other: row?.otherId && row.otherUrl ? { id: row.otherId, url: row.otherUrl } : null,
    };
    if (!this.#known || this.#known.at <= at) this.#known = { at, locations };
    return locations;
  }
}

/** If the blob is gone from `from`, a move has copied it to `to` before it deleted it. */
async function copyAgain(from: BlobStore, to: BlobStore, key: string): Promise<void> {
  try {
    await to.put(key, readBlob(from, key));
  } catch (error) {
    if (!(error instanceof BlobNotFoundError)) throw error;
    if ((await to.stat(key)) === null)
      throw new BlobStoreUnavailableError('faulty', 'the blob was deleted before it was in all locations', {
        cause: error,
      });
  }
}

/** If the blob were opened before the first read, it would stay open after a put that fails early. */
export async function* readBlob(store: BlobStore, key: string): AsyncGenerator<Buffer> {
  yield* await store.open(key);
}
