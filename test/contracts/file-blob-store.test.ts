import { mkdtemp, open, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FileBlobStore } from '../../src/shared/platform/blobs/file-blob-store.ts';
import { chunksOf, failingBody, readAll } from './blob-store-suite.ts';

type FileHandle = Awaited<ReturnType<typeof open>>;

describe('file blob store', () => {
  let directory: string;
  let store: FileBlobStore;
  let handles: FileHandle;

  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'holdfast-blobs-'));
    store = await FileBlobStore.open({ directory });
    const handle = await open(path.join(directory, 'any'), 'w');
    handles = Object.getPrototypeOf(handle);
    await handle.close();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await rm(directory, { recursive: true, force: true });
  });

  const unfinished = () => readdir(path.join(directory, 'unfinished'));
  const put = (key: string, text = 'x') => store.put(key, chunksOf(Buffer.from(text)));
  const fail = (code: string) => Object.assign(new Error(code), { code });

  it.each([
    ['ENOSPC', 'write', 'full'],
    ['ENOSPC', 'sync', 'full'],
    ['EDQUOT', 'write', 'full'],
    ['EIO', 'sync', 'faulty'],
  ] as const)('reports %s in %s, leaves nothing and keeps the older blob', async (code, method, fault) => {
    await put('key', 'older');
    const broken = jest.spyOn(handles, method).mockRejectedValue(fail(code));
    await expect(put('key', 'newer')).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault, status: 503 });
    broken.mockRestore();
    expect(await unfinished()).toEqual([]);
    expect((await readAll(await store.open('key'))).toString()).toBe('older');
  });

  it('keeps writing when the system writes only part of a chunk', async () => {
    const write: (chunk: Buffer, offset: number, length: number) => Promise<{ bytesWritten: number }> = handles.write;
    const writeFew = function (this: FileHandle, chunk: Buffer, offset: number) {
      return write.call(this, chunk, offset, Math.min(7, chunk.length - offset));
    };
    jest.spyOn(handles, 'write').mockImplementation(writeFew as FileHandle['write']);
    expect(await put('key', 'many bytes, seven at a time')).toEqual({ storedBytes: 27 });
    expect((await readAll(await store.open('key'))).toString()).toBe('many bytes, seven at a time');
  });

  it('flushes the bytes before the name, and the name before it returns', async () => {
    const seen: boolean[] = [];
    const sync = handles.sync;
    jest.spyOn(handles, 'sync').mockImplementation(async function (this: FileHandle) {
      seen.push((await store.stat('key')) !== null);
      await sync.call(this);
    });
    await put('key');
    expect(seen).toEqual([false, true]);
  });

  it('ignores a signal during the last flush', async () => {
    const abort = new AbortController();
    const reason = new Error('the lease is lost');
    jest.spyOn(handles, 'sync').mockImplementation(async () => abort.abort(reason));
    await expect(store.put('key', chunksOf(Buffer.from('x')), { signal: abort.signal })).rejects.toBe(reason);
    expect(await store.stat('key')).toBeNull();
    expect(await unfinished()).toEqual([]);
  });

  it('reports a failing read and a file that became shorter', async () => {
    await put('key', 'some bytes');
    jest.spyOn(handles, 'read').mockRejectedValue(fail('EIO'));
    const broken = await store.open('key');
    await expect(readAll(broken)).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'faulty' });
    jest.restoreAllMocks();
    const shortened = await store.open('key');
    for (const name of await readdir(directory, { recursive: true })) {
      if (path.basename(name) === 'key') await writeFile(path.join(directory, name), 'some');
    }
    await expect(readAll(shortened)).rejects.toMatchObject({ name: 'BlobStoreUnavailableError', fault: 'faulty' });
  });

  it('does not report missing blobs when the volume is gone', async () => {
    await rm(path.join(directory, 'blobs'), { recursive: true });
    const gone = { name: 'BlobStoreUnavailableError', fault: 'misconfigured' };
    await expect(store.open('key')).rejects.toMatchObject(gone);
    await expect(store.stat('key')).rejects.toMatchObject(gone);
    await expect(store.delete('key')).rejects.toMatchObject(gone);
    await expect(store.list('')).rejects.toMatchObject(gone);
    await expect(store.check(1_000)).rejects.toMatchObject(gone);
    await expect(put('key')).rejects.toMatchObject(gone);
    expect(await unfinished()).toEqual([]);
  });

  it('reports an unusable directory', async () => {
    await writeFile(path.join(directory, 'file'), '');
    const opening = FileBlobStore.open({ directory: path.join(directory, 'file', 'blobs') });
    await expect(opening).rejects.toMatchObject({ name: 'BlobStoreUnavailableError' });
  });

  it('deletes only temporary files older than an hour when it opens', async () => {
    const old = path.join(directory, 'unfinished', 'old.part');
    await writeFile(old, 'x');
    await writeFile(path.join(directory, 'unfinished', 'new.part'), 'x');
    const longAgo = new Date(Date.now() - 3_700_000);
    await utimes(old, longAgo, longAgo);
    await put('key');
    await FileBlobStore.open({ directory });
    expect(await unfinished()).toEqual(['new.part']);
    expect(await store.stat('key')).not.toBeNull();
  });

  it('does not list files of other programs', async () => {
    await put('key');
    await writeFile(path.join(directory, 'blobs', '00', '.nfs0001'), 'x');
    await writeFile(path.join(directory, 'blobs', '00', 'Thumbs.db'), 'x');
    expect((await store.list('')).blobs.map((blob) => blob.key)).toEqual(['key']);
  });

  it('closes every descriptor in all cases', async () => {
    const descriptors = async () => (await readdir('/proc/self/fd')).length;
    const before = await descriptors();
    for (let index = 0; index < 20; index++) {
      await put('key', 'x'.repeat(100_000));
      await put('key', 'x'.repeat(1_000_000));
      await store.put('key', failingBody(Buffer.from('x'), new Error('gone'))).catch(() => undefined);
      for await (const _chunk of await store.open('key')) break;
      await readAll(await store.open('key'));
      const abort = new AbortController();
      await store.open('key', { signal: abort.signal });
      abort.abort();
    }
    expect(await descriptors()).toBeLessThanOrEqual(before + 2);
  });
});
