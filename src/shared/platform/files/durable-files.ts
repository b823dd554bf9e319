import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { codeOf } from '../errors/causes.ts';

// A file's content is on disk only after fsync of the file, and its name only after fsync of its directory.

/** Also syncs an existing directory, because the process that created it may have been killed before its sync. */
export function makeFolderDurably(directory: string): void {
  const target = path.resolve(directory);
  const firstCreated = mkdirSync(target, { recursive: true });
  const top = path.dirname(firstCreated ?? target);
  for (let parent = path.dirname(target); parent.length > top.length; parent = path.dirname(parent)) syncPath(parent);
  try {
    syncPath(top);
  } catch (error) {
    // The creator of our directory is then responsible for its name in the directory above, which we may not open.
    if (firstCreated !== undefined || !isDenied(error)) throw error;
  }
}

/**
 * `prepare` gets the temporary name. Throws EEXIST for an existing file, which stays unchanged. Not safe for concurrent calls with the same
 * name.
 */
export function createFileDurably(file: string, content: string, options: NewFile): void {
  // Unlike a rename, a link never replaces an existing file.
  writeDurably(file, content, options, linkSync);
}

/** Replaces an existing file: readers see either its old or its new content. */
export function replaceFileDurably(file: string, content: string, options: NewFile): void {
  writeDurably(file, content, options, renameSync);
}

interface NewFile {
  readonly mode: number;
  readonly prepare?: ((temporary: string) => void) | undefined;
}

function writeDurably(
  file: string,
  content: string,
  { mode, prepare }: NewFile,
  move: (temporary: string, file: string) => void,
): void {
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, content, { mode, flag: 'wx' });
    prepare?.(temporary);
    syncPath(temporary);
    move(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  syncPath(path.dirname(file));
}

export function syncPath(fileOrDirectory: string): void {
  const descriptor = openSync(fileOrDirectory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes(codeOf(error) ?? '');
}
