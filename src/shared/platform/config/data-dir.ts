import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { OperatorError } from '../errors/errors.ts';
import { createFileDurably, makeFolderDurably, syncPath } from '../files/durable-files.ts';

/** Another server is running on the same data directory. */
export class DataDirInUseError extends OperatorError {
  override readonly name = 'DataDirInUseError';
}

/** The data directory cannot be created or written. */
class DataDirError extends OperatorError {
  override readonly name = 'DataDirError';
}

/**
 * Creates the data directory if needed and claims it for this process, so that two servers cannot run on it at once.
 * Replaces the claim of a killed process. Returns a function that releases the claim. Throws DataDirInUseError,
 * and DataDirError if the directory cannot be created or written.
 */
export function claimDataDir(directory: string): () => void {
  try {
    makeFolderDurably(directory);
  } catch (error) {
    throw unusable(directory, error);
  }
  const file = path.join(directory, 'server.pid');
  const claim = `${process.pid} ${startOf(process.pid) ?? ''}`.trim();
  for (let attempt = 1; attempt <= 2; attempt++) {
    try {
      writeFileSync(file, claim, { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(directory, error);
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

/** Reads the key ring in the data directory; null if there is none. */
export function readMasterKeys(directory: string): string | null {
  const file = masterKeysFile(directory);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/**
 * Reads the key ring in the data directory, or creates it with `generate`, readable by the owner only. It is durable
 * when this returns, because data encrypted with a lost key ring can never be read again. Claim the directory first.
 */
export function ensureMasterKeys(directory: string, generate: () => string): string {
  const file = masterKeysFile(directory);
  if (!existsSync(file)) createFileDurably(file, `${generate()}\n`, { mode: 0o600 });
  // Even if it existed: the process that created it may have been killed before it synced.
  syncPath(file);
  syncPath(directory);
  return readFileSync(file, 'utf8').trim();
}

function unusable(directory: string, error: unknown): DataDirError {
  return new DataDirError(`HOLDFAST_DATA_DIR: ${directory} cannot be used: ${(error as Error).message}`, {
    cause: error,
  });
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

/** Returns the start time of a process, in clock ticks since boot, to detect a reused process id. Linux only. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
