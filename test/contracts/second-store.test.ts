import { expect, test } from '@jest/globals';
import type { BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';
import { once } from '../../src/shared/platform/blobs/blob-streams.ts';
import type { BlobLocations } from '../../src/shared/platform/blobs/locations/blob-location-repository.ts';
import { LocatedBlobStore, locationKey } from '../../src/shared/platform/blobs/locations/located-blob-store.ts';
import { MirroredBlobStore } from '../../src/shared/platform/blobs/second/mirrored-blob-store.ts';
import { settleCopy } from '../../src/shared/state/checkpoints/settle-copy.ts';
import { MemoryBlobs } from '../support/memory-blobs.ts';

const names = ['audit/a', 'audit/b', 'audit/c', 'audit/d', 'audit/e'];
const backwards = (one: string, two: string): number => (one < two ? 1 : -1);

async function openBoth(waiting: readonly string[] = []) {
  const [main, second] = [new MemoryBlobs(), new MemoryBlobs({ compare: backwards })];
  for (const store of [main, second]) for (const name of names) await store.put(name, once(Buffer.from(name)));
  const queue = { add: async () => {}, addAll: async () => {}, listCopies: async () => waiting };
  return { main, second, store: new MirroredBlobStore({ main, second, queue }) };
}

async function listAll(store: BlobStore, beforePage: (number: number) => void): Promise<string[]> {
  const found: string[] = [];
  let after: string | undefined;
  for (let number = 0; ; number++) {
    beforePage(number);
    const page: Awaited<ReturnType<BlobStore['list']>> = await store.list('audit/', after);
    found.push(...page.blobs.map(({ key }) => key));
    if (page.next === null) return found;
    after = page.next;
  }
}

test.each([0, 1, 2])('a listing whose store is away from page %i on is whole, or fails', async (awayFrom) => {
  const { main, store } = await openBoth();
  const listing = listAll(store, (number) => {
    main.isAway = number === awayFrom;
  });
  if (awayFrom === 0) expect((await listing).sort()).toEqual(names);
  else await expect(listing).rejects.toMatchObject({ status: 503 });
});

test('a listing of the second store, which lacks a blob that waits to be copied, fails', async () => {
  const { main, second, store } = await openBoth(['audit/c']);
  main.isAway = true;
  expect((await listAll(store, () => {})).sort()).toEqual(names);
  await second.delete('audit/c');
  await expect(listAll(store, () => {})).rejects.toMatchObject({ status: 503 });
});

test('a blob is absent only if both stores say so', async () => {
  const { main, second, store } = await openBoth();
  await main.delete('audit/a');
  expect(await store.findAbsent(['audit/a'])).toEqual([]);
  second.isAway = true;
  await expect(store.findAbsent(['audit/a'])).rejects.toMatchObject({ status: 503 });
  await expect(store.stat('audit/a')).rejects.toMatchObject({ status: 503 });
  await expect(store.open('audit/a')).rejects.toMatchObject({ status: 503 });
  expect(await store.findAbsent(['audit/b'])).toEqual([]);
});

test('a listing that began before the blobs moved goes on in the location that was left, or begins again', async () => {
  const { main: own, second: other } = await openBoth();
  const row = { generation: 1, faults: 0, verifiedAt: null, mainUrl: '/both', otherUrl: '/both' };
  let locations: BlobLocations = { ...row, phase: 'copying', mainId: 'one', otherId: 'two' };
  for (const [store, id] of [
    [own, 'one'],
    [other, 'two'],
  ] as const)
    await store.put(locationKey(id), once(Buffer.from('here')));
  const located = new LocatedBlobStore({
    locations: { find: async () => locations, noteFault: async () => true },
    own: replaced(own, { stat: async (key) => (await own.stat(key)) ?? (await other.stat(key)) }),
    config: { kind: 'files', directory: '/both' },
  });
  // All locations are reached through one store here; their ids differ.
  const first = await located.list('audit/');
  locations = { ...locations, phase: 'switched', mainId: 'two', otherId: 'one' };
  const next = await located.list('audit/', first.next as string);
  expect([...first.blobs, ...next.blobs].map(({ key }) => key)).toEqual(names.slice(0, 4));
  locations = { ...locations, phase: 'settled', otherId: null, otherUrl: null };
  await expect(located.list('audit/', first.next as string)).rejects.toMatchObject({ name: 'ListingEndedError' });
});

/** The store with other methods. */
const replaced = (store: BlobStore, methods: Partial<BlobStore>): BlobStore =>
  new Proxy(store, { get: (target, name: keyof BlobStore) => methods[name] ?? target[name]?.bind(target) });

/** Rows of blobs: the ones that are kept. */
function rowsOf(...kept: string[]) {
  const keys = new Set(kept);
  const scheduled: string[] = [];
  return {
    keys,
    scheduled,
    blobRows: {
      isKept: async (key: string) => keys.has(key),
      scheduleDeletion: async (key: string): Promise<never> => scheduled.push(key) as never,
    },
  };
}

test.each(['main', 'second'] as const)(
  'a blob that only the %s store has, and that is being deleted, is not copied',
  async (has) => {
    const stores = await openBoth();
    const key = 'checkpoints/aa/one';
    await stores[has].put(key, once(Buffer.from('bytes')));
    const { blobRows } = rowsOf();
    await settleCopy({ ...stores, blobRows }, { key, isDeletion: false });
    expect([stores.main.blobs.has(key), stores.second.blobs.has(key)]).toEqual([has === 'main', has === 'second']);
    // A deletion that is noted ends.
    await settleCopy({ ...stores, blobRows }, { key, isDeletion: true });
    expect([stores.main.blobs.has(key), stores.second.blobs.has(key)]).toEqual([false, false]);
  },
);

test('a blob that is deleted while it is copied is deleted again', async () => {
  for (const key of ['checkpoints/aa/one', 'audit/one']) {
    const { main, second } = await openBoth();
    const { blobRows, keys, scheduled } = rowsOf(key);
    await main.put(key, once(Buffer.from('bytes')));
    const put: BlobStore['put'] = async (at, body) => {
      const stored = await second.put(at, body);
      // The sweep has deleted it in both stores before the copy was there.
      keys.delete(key);
      await main.delete(key);
      return stored;
    };
    await settleCopy({ main, second: replaced(second, { put }), blobRows }, { key, isDeletion: false });
    // A blob with a row is left to the sweep, which deletes it in both stores.
    if (key.startsWith('audit/')) expect(second.blobs.has(key)).toBe(false);
    else expect(scheduled).toEqual([key]);
  }
});

test('a noted deletion deletes no blob that is in use', async () => {
  const stores = await openBoth();
  const key = 'checkpoints/aa/used';
  await stores.main.put(key, once(Buffer.from('bytes')));
  await settleCopy({ ...stores, ...rowsOf(key) }, { key, isDeletion: true });
  expect(stores.main.blobs.has(key)).toBe(true);
});
