import { expect, test } from '@jest/globals';
import { MemoryBlobs } from '../../../test/support/memory-blobs.ts';
import { once } from '../platform/blobs/blob-streams.ts';
import { KeyPages } from './key-pages.ts';
import { KeySet } from './key-set.ts';
import { KnownBlobs } from './known-blobs.ts';
import { type BlobCopy, backupKeys, writeBlobList } from './manifest.ts';

const copyOf = (name: string, bytes = 1): BlobCopy => ({
  ...{ key: backupKeys.blobs + name, bytes, sha256: '0'.repeat(64), size: bytes },
});

/** A target with interrupted backups, each with its lists. */
async function targetOf(backups: Readonly<Record<string, readonly (readonly BlobCopy[])[]>>): Promise<MemoryBlobs> {
  const target = new MemoryBlobs();
  for (const [id, lists] of Object.entries(backups)) {
    await target.put(backupKeys.start(id, 'ours'), once(Buffer.from('\n')));
    for (const [at, list] of lists.entries())
      await target.put(backupKeys.blobList(id, at + 1), once(writeBlobList(list)));
  }
  return target;
}

const find = async (known: KnownBlobs, ...names: string[]): Promise<string[]> => {
  const found = await known.find(names.map((name) => backupKeys.blobs + name));
  return [...found.values()].map(({ bytes, key }) => `${key.slice(backupKeys.blobs.length)} ${bytes}`).toSorted();
};

test('copies are found in lists of any order, the newest of each, and no others', async () => {
  const target = await targetOf({
    1: [
      [copyOf('d'), copyOf('b')],
      [copyOf('z'), copyOf('a')],
    ],
    2: [[copyOf('c'), copyOf('d', 2)]],
  });
  const known = await KnownBlobs.open(target, 'ours');
  expect(await find(known, 'a', 'b', 'c', 'd', 'e')).toEqual(['a 1', 'b 1', 'c 1', 'd 2']);
  expect(await find(known, 'z')).toEqual(['z 1']);
  expect(await find(known, 'b')).toEqual(['b 1']);
  expect(await find(known)).toEqual([]);
});

test('lists that are damaged or gone are left out, others of the same backup are not', async () => {
  const target = await targetOf({ 1: [[copyOf('a')], [copyOf('b')], [copyOf('c')]] });
  const damaged = target.blobs.get(backupKeys.blobList('1', 1)) as Buffer;
  target.blobs.set(backupKeys.blobList('1', 1), damaged.subarray(5));
  const known = await KnownBlobs.open(target, 'ours');
  target.blobs.delete(backupKeys.blobList('1', 2));
  expect(await find(known, 'a', 'b', 'c')).toEqual(['c 1']);
});

test('pages keep keys and their order, a set knows which keys it has', () => {
  const keys = Array.from({ length: 12_001 }, (_, at) => `checkpoints/${(at * 7919) % 12_001}`);
  const pages = new KeyPages();
  const set = new KeySet();
  pages.push(keys.slice(0, 7_000));
  pages.push(keys.slice(7_000));
  for (const key of keys.slice(1)) set.add(key);
  for (let times = 0; times < 2; times++) expect([...pages.pages()].flat()).toEqual(keys);
  expect(pages.length).toBe(12_001);
  expect(keys.filter((key) => !set.has(key))).toEqual(keys.slice(0, 1));
  expect([...new KeyPages().pages()]).toEqual([]);
});
