import type { Folder, FolderFile } from './folder.ts';

/** `prefix` ends in `/`; names are relative to it. Closing has no effect. */
export class SubFolder implements Folder {
  readonly #folder: Folder;
  readonly #prefix: string;

  constructor(folder: Folder, prefix: string) {
    this.#folder = folder;
    this.#prefix = prefix;
  }

  async *list(prefix: string): AsyncGenerator<FolderFile> {
    for await (const file of this.#folder.list(this.#prefix + prefix))
      yield { ...file, name: file.name.slice(this.#prefix.length) };
  }

  open(name: string): Promise<AsyncIterable<Buffer> | null> {
    return this.#folder.open(this.#prefix + name);
  }

  write(name: string, body: AsyncIterable<Buffer>, signal?: AbortSignal): Promise<void> {
    return this.#folder.write(this.#prefix + name, body, signal);
  }

  delete(name: string): Promise<void> {
    return this.#folder.delete(this.#prefix + name);
  }

  async close(): Promise<void> {}
}
