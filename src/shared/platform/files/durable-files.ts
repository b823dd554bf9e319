import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

// A file that was written is on disk only after fsync of the file, and its name only after fsync of its folder.

/**
 * Makes a folder and those above it that are lacking, and puts their names on disk. One that is there is synced too: the
 * process that made it may have been killed before it did so.
 */
export function makeFolderDurably(directory: string): void {
  const target = path.resolve(directory);
  const firstMade = mkdirSync(target, { recursive: true });
  const top = path.dirname(firstMade ?? target);
  for (let folder = path.dirname(target); folder.length > top.length; folder = path.dirname(folder)) syncPath(folder);
  try {
    syncPath(top);
  } catch (error) {
    // A folder above may be closed to us; whoever made the one below it for us has to answer for its name.
    if (firstMade !== undefined || !isDenied(error)) throw error;
  }
}

/**
 * Makes a file with this content, whole or not at all, and puts it on disk before it returns. `prepare` is called with its
 * temporary name. Throws EEXIST when there is one already, and leaves that as it is. One caller at a time per name.
 */
export function createFileDurably(
  file: string,
  content: string,
  options: { readonly mode: number; readonly prepare?: (temporary: string) => void },
): void {
  const temporary = `${file}.new`;
  rmSync(temporary, { force: true });
  try {
    writeFileSync(temporary, content, { mode: options.mode, flag: 'wx' });
    options.prepare?.(temporary);
    syncPath(temporary);
    // Unlike a rename, a link never replaces what is there.
    linkSync(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
  syncPath(path.dirname(file));
}

/** Puts a file's content, or a folder's names, on disk. */
export function syncPath(place: string): void {
  const descriptor = openSync(place, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');
}
