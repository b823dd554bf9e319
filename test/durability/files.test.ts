import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { claimDataDir, ensureMasterKeys, readMasterKeys } from '../../src/shared/platform/config/data-dir.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { chunksOf, readAll } from '../contracts/blob-store-suite.ts';
import { describeOnLossyDisk, LossyDisk, losses } from './support/lossy-disk.ts';

const logger = createLogger({ level: 'silent' });

/** Content that shows which blob it belongs to and whether a part of it is missing. */
function contentOf(key: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, `${key} `);
}

await describeOnLossyDisk('files after a power cut', () => {
  let disk: LossyDisk;
  beforeEach(async () => {
    disk = await LossyDisk.mount();
  });
  afterEach(() => disk[Symbol.asyncDispose]());

  test.each(losses)('stored blobs are complete, and no blob is partially there (lost: %s)', async (_, loss) => {
    const directory = path.join(disk.directory, 'data');
    const store = await FileBlobStore.open({ directory });
    const stored = new Map<string, Buffer>();
    const putUntilCut = async (lane: number): Promise<void> => {
      for (let at = 0; ; at++) {
        const key = `blob/${lane}/${at}`;
        const content = contentOf(key, 1 + ((lane * 7919 + at * 104_729) % 300_000));
        await store.put(key, chunksOf(content));
        stored.set(key, content);
        if (stored.size === 60) void disk.cut(loss).then(cut.resolve, cut.reject);
      }
    };
    const cut = Promise.withResolvers<void>();
    const lanes = await Promise.allSettled([1, 2, 3, 4].map(putUntilCut));
    expect(lanes.every(({ status }) => status === 'rejected')).toBe(true);
    await cut.promise;
    await disk.restore();

    const again = await FileBlobStore.open({ directory });
    for (const [key, content] of stored) {
      expect({ key, whole: (await readAll(await again.open(key))).equals(content) }).toEqual({ key, whole: true });
    }
    const { blobs } = await again.list('');
    for (const { key, storedBytes } of blobs) {
      const whole = (await readAll(await again.open(key))).equals(contentOf(key, storedBytes));
      expect({ key, whole }).toEqual({ key, whole: true });
    }
  });

  test('blobs stored after an interrupted start are there', async () => {
    const directory = path.join(disk.directory, 'data');
    // As left by a process that was killed before it synced.
    await FileBlobStore.open({ directory });
    await disk.cut();
    await disk.restore();
    for (let shard = 0; shard < 256; shard++) {
      mkdirSync(path.join(directory, 'blobs', shard.toString(16).padStart(2, '0')), { recursive: true });
    }
    mkdirSync(path.join(directory, 'unfinished'), { recursive: true });
    const store = await FileBlobStore.open({ directory });
    await store.put('key', chunksOf(Buffer.from('content')));
    await disk.cut();
    await disk.restore();
    const again = await FileBlobStore.open({ directory });
    expect((await readAll(await again.open('key'))).toString()).toBe('content');
  });

  test('a blob that was deleted stays deleted', async () => {
    const directory = path.join(disk.directory, 'data');
    const store = await FileBlobStore.open({ directory });
    await store.put('key', chunksOf(Buffer.from('content')));
    await store.delete('key');
    await disk.cut();
    await disk.restore();
    expect(await (await FileBlobStore.open({ directory })).stat('key')).toBeNull();
  });

  test.each(losses)('the master keys are there as soon as they may be used (lost: %s)', async (_, loss) => {
    const directory = path.join(disk.directory, 'new', 'data');
    const claim = await claimDataDir(directory, logger);
    const ring = ensureMasterKeys(directory, () => 'k1:made at the first start');
    claim.release();
    await disk.cut(loss);
    await disk.restore();
    expect(readMasterKeys(directory)).toBe(ring);
    expect(readdirSync(directory).filter((name) => name.includes('key'))).toEqual(['master-keys']);
  });

  test('master keys that a killed process left in the page cache are synced before they are used', async () => {
    const directory = path.join(disk.directory, 'data');
    mkdirSync(directory);
    writeFileSync(path.join(directory, 'master-keys'), 'k1:ring\n');
    const claim = await claimDataDir(directory, logger);
    expect(ensureMasterKeys(directory, () => 'k2:another')).toBe('k1:ring');
    claim.release();
    await disk.cut();
    await disk.restore();
    expect(readMasterKeys(directory)).toBe('k1:ring');
  });

  test('master keys are never replaced', () => {
    const directory = disk.directory;
    expect(ensureMasterKeys(directory, () => 'k1:first')).toBe('k1:first');
    expect(ensureMasterKeys(directory, () => 'k2:second')).toBe('k1:first');
    expect(readFileSync(path.join(directory, 'master-keys'), 'utf8')).toBe('k1:first\n');
  });
});
