import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { OperatorError } from '../errors/errors.ts';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';

/** Another server is running on the same data folder. */
export class DataDirInUseError extends OperatorError {
  override readonly name = 'DataDirInUseError';
}

/**
 * Makes the data folder if need be and takes it for this process, so that two servers cannot run on it at once. The claim of
 * a killed process is taken over. Returns what gives it back. Throws DataDirInUseError.
 */
export function claimDataDir(directory: string): () => void {
  makeFolderDurably(directory);
  const file = path.join(directory, 'server.pid');
  const mine = `${process.pid} ${startOf(process.pid) ?? ''}`.trim();
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      writeFileSync(file, mine, { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = readFileSync(file, 'utf8').trim();
    const pid = Number(holder.split(' ')[0]);
    if (isAlive(pid) && pid !== process.pid && holder === `${pid} ${startOf(pid) ?? ''}`.trim()) {
      throw new DataDirInUseError(`The data directory ${directory} is in use by another server (process ${pid})`);
    }
    rmSync(file, { force: true });
  }
  throw new DataDirInUseError(`The data directory ${directory} is being claimed by another server`);
}

/** The key ring kept in the data folder; null when there is none. */
export function readMasterKeys(directory: string): string | null {
  const file = masterKeysFile(directory);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/**
 * The key ring kept in the data folder, for nobody else to read; `generate` makes one when there is none. It is on disk when
 * this returns: what is encrypted by a ring that is lost can never be read again. Call it with the folder claimed.
 */
export function ensureMasterKeys(directory: string, generate: () => string): string {
  const file = masterKeysFile(directory);
  if (!existsSync(file)) createFileDurably(file, `${generate()}\n`, { mode: 0o600 });
  // Also when it was there: the process that made it may have been killed before it was synced.
  syncPath(file);
  syncPath(directory);
  return readFileSync(file, 'utf8').trim();
}

const masterKeysFile = (directory: string): string => path.join(directory, 'master-keys');

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** When the process began, in clock ticks since boot: tells a process from a later one with the same number. Linux only. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
