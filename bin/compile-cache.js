import { constants, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import module from 'node:module';
import os from 'node:os';
import path from 'node:path';

/**
 * Caches compiled code in the user's cache directory, which halves the time that later starts spend on loading code.
 * Node executes what it finds there, so the cache stays off if anybody else could write to the directory.
 */
export function enableCompileCache() {
  try {
    const folder = makePrivateFolder();
    if (folder !== null) module.enableCompileCache(folder);
  } catch {
    // Without a home directory, or on a disk that is read-only or full, the start is only slower.
  }
}

function makePrivateFolder() {
  const { XDG_CACHE_HOME } = process.env;
  const caches =
    XDG_CACHE_HOME && path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : path.join(os.homedir(), '.cache');
  mkdirSync(caches, { recursive: true, mode: 0o700 });
  let folder = realpathSync(caches);
  for (const name of ['holdfast', 'compiled']) {
    folder = path.join(folder, name);
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!isOursAlone(folder)) return null;
  }
  for (let above = path.dirname(folder); above !== path.dirname(above); above = path.dirname(above))
    if (!isSafeAbove(above)) return null;
  return folder;
}

function isOursAlone(folder) {
  const { uid, mode } = statFolder(folder);
  return uid === process.geteuid() && (mode & 0o077) === 0;
}

/** Anybody who can write to a parent directory could replace ours, unless the parent is sticky like /tmp. */
function isSafeAbove(folder) {
  const { uid, mode } = statFolder(folder);
  return (uid === process.geteuid() || uid === 0) && ((mode & 0o022) === 0 || (mode & 0o1000) !== 0);
}

/** Does not follow links: a link may point to another user's directory. Throws if it is not a directory. */
function statFolder(folder) {
  const { uid, mode } = lstatSync(folder);
  if ((mode & constants.S_IFMT) !== constants.S_IFDIR) throw new Error(`${folder} is not a directory`);
  return { uid, mode };
}
