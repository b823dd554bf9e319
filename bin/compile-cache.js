import { constants, lstatSync, mkdirSync, realpathSync } from 'node:fs';
import module from 'node:module';
import os from 'node:os';
import path from 'node:path';

/**
 * Keeps compiled code for later starts in the user's cache folder: it halves the time that they spend on reading code. What lies
 * in that folder is run as ours, so there is no cache unless nobody else can put anything there.
 */
export function enableCompileCache() {
  try {
    const folder = makePrivateFolder();
    if (folder !== null) module.enableCompileCache(folder);
  } catch {
    // Without a home, or on a disk that is read-only or full, the start is slower and nothing else.
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

/** Whoever may write to a folder above ours could put another one in its place, unless the folder is sticky as /tmp is. */
function isSafeAbove(folder) {
  const { uid, mode } = statFolder(folder);
  return (uid === process.geteuid() || uid === 0) && ((mode & 0o022) === 0 || (mode & 0o1000) !== 0);
}

/** Not followed when it is a link: a link may point to a stranger's folder. */
function statFolder(folder) {
  const { uid, mode } = lstatSync(folder);
  if ((mode & constants.S_IFMT) !== constants.S_IFDIR) throw new Error(`${folder} is no folder`);
  return { uid, mode };
}
