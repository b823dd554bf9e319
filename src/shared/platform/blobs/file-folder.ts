import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Folder, FolderFile } from './folder.ts';

export class FileFolder implements Folder {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async *list(prefix: string): AsyncGenerator<FolderFile> {
    const found = await orNull(() => opendir(path.join(this.#directory, prefix)));
    if (found === null) return;
    for await (const entry of found) {
      const name = `${prefix}${entry.name}`;
      if (entry.isDirectory()) yield* this.list(`${name}/`);
      else {
        const info = await orNull(() => stat(path.join(this.#directory, name)));
        if (info?.isFile()) yield { name, bytes: info.size, modifiedAt: info.mtime };
      }
    }
  }

  async open(name: string): Promise<AsyncIterable<Buffer> | null> {
    const file = path.join(this.#directory, name);
    if ((await orNull(() => stat(file))) === null) return null;
    return createReadStream(file, { highWaterMark: 256 * 1024 });
  }

  async write(name: string, body: AsyncIterable<Buffer>, signal?: AbortSignal): Promise<void> {
    const file = path.join(this.#directory, name);
    // Two processes may write the same file.
    const part = `${file}.${randomUUID()}.part`;
    const directory = path.resolve(path.dirname(file));
    const created = await mkdir(directory, { recursive: true });
    try {
      const handle = await open(part, 'w', 0o600);
      await pipeline(body, handle.createWriteStream({ flush: true }), { ...(signal ? { signal } : {}) });
      signal?.throwIfAborted();
      await rename(part, file);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw error;
    }
    await syncDirectories(directory, created === undefined ? directory : path.dirname(path.resolve(created)));
  }

  async delete(name: string): Promise<void> {
    await rm(path.join(this.#directory, name), { force: true });
  }

  async close(): Promise<void> {}
}

/** Some disks or systems do not permit a flush. */
const cannotSync: ReadonlySet<unknown> = new Set(['EACCES', 'EINVAL', 'ENOTSUP', 'EPERM']);

/** Flushes the names in the directory and its parents up to `top`. A rename is durable only afterwards. */
async function syncDirectories(directory: string, top: string): Promise<void> {
  for (let at = directory; at.length >= top.length; at = path.dirname(at)) {
    try {
      await using handle = await open(at, 'r');
      await handle.sync();
    } catch (error) {
      if (!cannotSync.has((error as NodeJS.ErrnoException).code)) throw error;
    }
    if (at === top) return;
  }
}

async function orNull<T>(run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
