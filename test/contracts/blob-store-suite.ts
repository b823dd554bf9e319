import { createHash, randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BlobNotFoundError, type BlobStore } from '../../src/shared/platform/blobs/blob-store.ts';

/** What the suite needs from each kind of store. */
export interface StoreUnderTest {
  readonly store: BlobStore;
  /** The same blobs, ten to a page. */
  readonly smallPages: BlobStore;
  /** Puts that have started and are neither complete nor aborted. */
  countUnfinished(key: string): Promise<number>;
  /** Leaves what a put of a killed process leaves behind. */
  leaveUnfinished(key: string): Promise<void>;
  close(): Promise<void>;
}

export const mib = 1024 * 1024;

/** `bytes` in chunks of 64,000, which match neither pages nor parts. */
export async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < bytes.length; offset += 64_000) yield bytes.subarray(offset, offset + 64_000);
}

export async function readAll(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A body that sends `head`, reports that it waits, and then waits until released or forever. */
export function waitingBody(head: Buffer, tail = Buffer.alloc(0)) {
  const waiting = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  async function* body(): AsyncGenerator<Buffer> {
    yield* chunksOf(head);
    waiting.resolve();
    await gate.promise;
    yield* chunksOf(tail);
  }
  return { body: body(), waiting: waiting.promise, letGo: gate.resolve };
}

export async function* failingBody(head: Buffer, error: Error): AsyncGenerator<Buffer> {
  yield* chunksOf(head);
  throw error;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The behavior that every BlobStore shares; `start` is called once. */
export function describeBlobStore(name: string, start: () => Promise<StoreUnderTest>): void {
  describe(`blob store on ${name}`, () => {
    let subject: StoreUnderTest;
    let store: BlobStore;

    beforeAll(async () => {
      subject = await start();
      store = subject.store;
    });
    afterAll(() => subject?.close());

    const put = (key: string, bytes: Buffer) => store.put(key, chunksOf(bytes));
    const read = async (key: string) => readAll(await store.open(key));

    it.each([
      ['no byte', 0],
      ['one byte', 1],
      ['exactly one part', 5 * mib],
      ['one byte more than a part', 5 * mib + 1],
      ['20 MB', 20_000_000],
    ])('returns %s as it was put', async (label, size) => {
      const key = `round-trip/${label.replaceAll(' ', '-').toLowerCase()}`;
      const bytes = randomBytes(size);
      expect(await put(key, bytes)).toEqual({ storedBytes: size });
      const found = await read(key);
      expect({ size: found.length, sha256: sha256(found) }).toEqual({ size, sha256: sha256(bytes) });
      expect((await store.stat(key))?.storedBytes).toBe(size);
    });

    it('returns the time of the put', async () => {
      const before = Date.now();
      await put('stat/time', Buffer.from('x'));
      const modifiedAt = (await store.stat('stat/time'))?.modifiedAt.getTime() ?? 0;
      // S3 times have a resolution of a second.
      expect(modifiedAt).toBeGreaterThanOrEqual(before - 1000);
      expect(modifiedAt).toBeLessThanOrEqual(Date.now() + 1000);
    });

    it('replaces an older and longer blob', async () => {
      await put('replace', randomBytes(6 * mib));
      await put('replace', Buffer.from('new'));
      expect((await read('replace')).toString()).toBe('new');
    });

    it.each([
      ['small', 1000],
      ['of many parts', 12 * mib],
    ])('shows a blob %s only when it is complete', async (label, size) => {
      const key = `whole/${size}`;
      const source = waitingBody(randomBytes(size), Buffer.from('end'));
      const done = store.put(key, source.body);
      await source.waiting;
      expect(await store.stat(key)).toBeNull();
      await expect(store.open(key)).rejects.toThrow(BlobNotFoundError);
      expect((await store.list('whole/')).blobs.map((blob) => blob.key)).not.toContain(key);
      if (label === 'of many parts') expect(await subject.countUnfinished(key)).toBe(1);
      source.letGo();
      expect(await done).toEqual({ storedBytes: size + 3 });
      expect((await store.stat(key))?.storedBytes).toBe(size + 3);
      expect(await subject.countUnfinished(key)).toBe(0);
    });

    it.each([
      ['before its first byte', 0],
      ['in its first part', 1000],
      ['after two parts', 12 * mib],
    ])('leaves only the older blob when a body fails %s', async (_label, size) => {
      const key = `failing/${size}`;
      await put(key, Buffer.from('older'));
      const error = new Error('the client went away');
      await expect(store.put(key, failingBody(randomBytes(size), error))).rejects.toBe(error);
      await expect(store.put(`${key}-new`, failingBody(randomBytes(size), error))).rejects.toBe(error);
      expect((await read(key)).toString()).toBe('older');
      expect(await store.stat(`${key}-new`)).toBeNull();
      expect(await subject.countUnfinished(key)).toBe(0);
      expect(await subject.countUnfinished(`${key}-new`)).toBe(0);
    });

    it.each([
      ['in its first part', 1000],
      ['after two parts', 12 * mib],
    ])('leaves nothing when the signal fires %s while the body waits', async (_label, size) => {
      const key = `aborted/${size}`;
      const abort = new AbortController();
      const source = waitingBody(randomBytes(size));
      const done = store.put(key, source.body, { signal: abort.signal });
      await source.waiting;
      const reason = new Error('the lease is lost');
      abort.abort(reason);
      await expect(done).rejects.toBe(reason);
      expect(await store.stat(key)).toBeNull();
      expect(await subject.countUnfinished(key)).toBe(0);
      expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
    });

    it('removes its signal listener after a put and after a read', async () => {
      const { signal } = new AbortController();
      await store.put('forgotten', chunksOf(Buffer.from('x')), { signal });
      await readAll(await store.open('forgotten', { signal }));
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    });

    it('does not read the body when the signal fired before', async () => {
      const body = chunksOf(Buffer.from('x'));
      const reason = new Error('too late');
      await expect(store.put('aborted/before', body, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      expect(await body.next()).toMatchObject({ done: false });
      expect(await store.stat('aborted/before')).toBeNull();
    });

    it('closes a body that it leaves unread', async () => {
      const abort = new AbortController();
      const ended = Promise.withResolvers<void>();
      async function* body(): AsyncGenerator<Buffer> {
        try {
          for (;;) {
            yield Buffer.from('more');
            abort.abort();
          }
        } finally {
          ended.resolve();
        }
      }
      await expect(store.put('aborted/ended', body(), { signal: abort.signal })).rejects.toThrow('aborted');
      await ended.promise;
    });

    it.each([
      ['the first bytes', 0, 10],
      ['bytes across a chunk', 262_100, 262_200],
      ['bytes of the second part', 5 * mib - 5, 5 * mib + 300_000],
      ['the last byte', 6 * mib - 1, 6 * mib],
      ['bytes up to the end and beyond', 6 * mib - 10, 6 * mib + 10],
      ['bytes after the end', 6 * mib, 6 * mib + 10],
    ])('reads a range: %s', async (_label, start, end) => {
      const bytes = Buffer.alloc(6 * mib, Buffer.from(Array.from({ length: 251 }, (_, at) => at)));
      if (!(await store.stat('range/blob'))) await put('range/blob', bytes);
      const found = await readAll(await store.open('range/blob', { range: { start, end } }));
      expect(found.equals(bytes.subarray(start, end))).toBe(true);
    });

    it('reports a missing blob as missing, also to a reader of a range', async () => {
      await expect(store.open('range/missing', { range: { start: 5, end: 10 } })).rejects.toThrow(BlobNotFoundError);
    });

    it('reports a missing blob as missing', async () => {
      await expect(store.open('missing/blob')).rejects.toThrow(BlobNotFoundError);
      expect(await store.stat('missing/blob')).toBeNull();
    });

    it('deletes existing and missing blobs', async () => {
      await put('deleted', Buffer.from('x'));
      await store.delete('deleted');
      await expect(store.open('deleted')).rejects.toThrow(BlobNotFoundError);
      await store.delete('deleted');
      await store.delete('never/was');
    });

    it('lists every blob of a prefix once, page by page, while others are added and deleted', async () => {
      const keys = Array.from({ length: 25 }, (_, index) => `list/a-${index}/blob`);
      await Promise.all([...keys, 'lisp', 'list-of-others', 'list/b'].map((key) => put(key, Buffer.from(key))));
      const pages = [];
      let after: string | undefined;
      do {
        const page = await subject.smallPages.list('list/a-', after);
        pages.push(page.blobs);
        after = page.next ?? undefined;
        await put(`list/a-late-${pages.length}`, Buffer.from('late'));
        await store.delete(`list/a-late-${pages.length - 1}`);
      } while (after !== undefined && pages.length < 10);
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(10);
      const found = pages.flat().filter((blob) => !blob.key.includes('late'));
      expect(found.map((blob) => blob.key).sort()).toEqual([...keys].sort());
      expect(found.every((blob) => blob.storedBytes === blob.key.length && blob.modifiedAt.getTime() > 0)).toBe(true);
    });

    it('ends a listing that fills its pages exactly, and an empty one', async () => {
      for (let index = 0; index < 20; index++) await put(`full-pages/${index}`, Buffer.from('x'));
      const first = await subject.smallPages.list('full-pages/');
      const second = await subject.smallPages.list('full-pages/', first.next ?? undefined);
      expect([first.blobs.length, second.blobs.length, second.next]).toEqual([10, 10, null]);
      expect(await store.list('no-such-prefix/')).toEqual({ blobs: [], next: null });
    });

    it('reports which of the given keys are missing, with others between and around them', async () => {
      const keys = Array.from({ length: 23 }, (_, index) => `absent/${String(index).padStart(2, '0')}/key`);
      const there = keys.filter((_, index) => index % 3 !== 1);
      await Promise.all([...there, 'absent/0', 'absent/07/kex', 'absent/zz'].map((key) => put(key, Buffer.from(key))));
      for (const asked of [subject.smallPages, store]) {
        const absent = await asked.findAbsent(keys.toReversed());
        expect(absent.sort()).toEqual(keys.filter((key) => !there.includes(key)));
        expect(await asked.findAbsent(there.slice(0, 1))).toEqual([]);
        expect(await asked.findAbsent([])).toEqual([]);
      }
    });

    it('keeps one complete blob when many put the same key at once', async () => {
      const bodies = Array.from({ length: 6 }, (_, index) => Buffer.alloc(6 * mib + index, index));
      await Promise.all(bodies.map((bytes) => put('contended', bytes)));
      const found = sha256(await read('contended'));
      expect(bodies.map(sha256)).toContain(found);
    });

    it('stops reading when the signal fires and when the reader stops', async () => {
      await put('partly-read', randomBytes(8 * mib));
      const abort = new AbortController();
      const opened = await store.open('partly-read', { signal: abort.signal });
      const reason = new Error('the reader is gone');
      const reading = (async () => {
        for await (const _chunk of opened) abort.abort(reason);
      })();
      await expect(reading).rejects.toBe(reason);
      expect(getEventListeners(abort.signal, 'abort')).toHaveLength(0);
      for await (const _chunk of await store.open('partly-read')) break;
      await expect(store.open('partly-read', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    it('sweeps leftovers of killed puts once they are old enough', async () => {
      await subject.leaveUnfinished('swept');
      expect(await subject.countUnfinished('swept')).toBe(1);
      await store.sweepUnfinished(3_600_000, ['']);
      expect(await subject.countUnfinished('swept')).toBe(1);
      expect(await store.sweepUnfinished(-60_000, [''])).toBeGreaterThanOrEqual(1);
      expect(await subject.countUnfinished('swept')).toBe(0);
    });

    it('reports that it is healthy', async () => {
      await store.check(60_000);
    });

    it.each([
      '',
      '/a',
      'a/',
      'a//b',
      '..',
      'a/../b',
      'a..b',
      './a',
      'a/.b',
      'A',
      'ä',
      'a b',
      'a\\b',
      'a~b',
      'a\0',
      'a\n',
      'x'.repeat(201),
    ])('rejects the key %j as a programming error', async (key) => {
      const body = chunksOf(Buffer.from('x'));
      await expect(store.put(key, body)).rejects.toThrow(TypeError);
      await expect(store.open(key)).rejects.toThrow(TypeError);
      await expect(store.stat(key)).rejects.toThrow(TypeError);
      await expect(store.delete(key)).rejects.toThrow(TypeError);
    });
  });
}
