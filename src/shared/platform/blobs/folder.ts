import { createReadStream } from 'node:fs';
import { mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../errors/errors.ts';

/** A file of a folder. Its name is relative, with `/` as separator. */
export interface FolderFile {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedAt: Date;
}

/** Files under any names that other programs read and write: on a disk, or in a bucket. Unlike a blob store, it keeps the names. */
export interface Folder {
  /** All files whose names begin with `prefix`, which ends in `/`, in any order. */
  list(prefix: string): AsyncIterable<FolderFile>;
  /** Opens a file for one read; null if there is none. */
  open(name: string): Promise<AsyncIterable<Buffer> | null>;
  /** Writes a file as a whole: readers see the old one or the new one. */
  write(name: string, body: AsyncIterable<Buffer>): Promise<void>;
  close(): Promise<void>;
}

/** Where a bucket is, if its place does not say so. */
export interface BucketDefaults {
  readonly region: string;
  readonly endpoint: string | null;
  readonly forcePathStyle: boolean;
  readonly requestTimeoutMs: number;
}

/** The place is neither a folder nor a bucket that can be opened. */
export class PlaceError extends OperatorError {
  override readonly name = 'PlaceError';
}

/**
 * Opens `file://DIR`, a path, or `s3://BUCKET/PREFIX`; `?region=`, `?endpoint=` and `?s3ForcePathStyle=true` are understood as the CLI
 * does. Sends nothing. Throws PlaceError.
 */
export async function openFolder(place: string, defaults: BucketDefaults): Promise<Folder> {
  const scheme = /^([a-z0-9+.-]+):\/\//i.exec(place)?.[1]?.toLowerCase() ?? 'file';
  if (scheme === 'file') return new FileFolder(directoryOf(place));
  if (scheme !== 's3')
    throw new PlaceError(`${place} is neither file://DIR nor s3://BUCKET/PREFIX: copy the files to one of these first`);
  const url = new URL(place);
  if (url.hostname === '') throw new PlaceError(`${place} names no bucket: s3://BUCKET/PREFIX`);
  const prefix = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, '');
  const { searchParams } = url;
  const endpoint = searchParams.get('endpoint') ?? defaults.endpoint;
  const pathStyle = searchParams.get('s3ForcePathStyle') ?? searchParams.get('use_path_style');
  // Imported on demand: the AWS SDK costs startup time and memory.
  const { S3Folder } = await import('./s3-folder.ts');
  return new S3Folder({
    bucket: url.hostname,
    prefix: prefix === '' ? '' : `${prefix}/`,
    region: searchParams.get('region') ?? defaults.region,
    endpoint: endpoint === null || /^https?:\/\//.test(endpoint) ? endpoint : `https://${endpoint}`,
    forcePathStyle: pathStyle === null ? defaults.forcePathStyle || endpoint !== null : pathStyle === 'true',
    requestTimeoutMs: defaults.requestTimeoutMs,
  });
}

function directoryOf(place: string): string {
  const text = place.replace(/^file:\/\//i, '').replace(/[?#].*$/, '');
  return path.resolve(text.startsWith('~') ? path.join(homedir(), text.slice(1)) : decodeURIComponent(text));
}

class FileFolder implements Folder {
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

  async write(name: string, body: AsyncIterable<Buffer>): Promise<void> {
    const file = path.join(this.#directory, name);
    const part = `${file}.part`;
    await mkdir(path.dirname(file), { recursive: true });
    try {
      const handle = await open(part, 'w', 0o600);
      await pipeline(body, handle.createWriteStream({ flush: true }));
      await rename(part, file);
    } catch (error) {
      await rm(part, { force: true }).catch(() => undefined);
      throw error;
    }
  }

  async close(): Promise<void> {}
}

async function orNull<T>(run: () => Promise<T>): Promise<T | null> {
  try {
    return await run();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
