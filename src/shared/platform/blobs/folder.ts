/** Names are relative, with `/` as the separator. */
export interface FolderFile {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedAt: Date;
}

/** Other programs read and write the files. Unlike a blob store, a folder keeps any names. */
export interface Folder {
  /** `prefix` ends in `/`. Lists files in any order. */
  list(prefix: string): AsyncIterable<FolderFile>;
  /** Opens a file for one read; null if it does not exist. */
  open(name: string): Promise<AsyncIterable<Buffer> | null>;
  /** Readers see either the old file or the new one. */
  write(name: string, body: AsyncIterable<Buffer>, signal?: AbortSignal): Promise<void>;
  /** A missing file is not an error. */
  delete(name: string): Promise<void>;
  close(): Promise<void>;
}
