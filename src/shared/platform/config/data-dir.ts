import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Another server is running on the same data folder. */
export class DataDirInUseError extends Error {
  override readonly name = 'DataDirInUseError';
}

/**
 * Takes the data folder for this process, so that two servers cannot run on it at once. The claim of a killed process is
 * taken over. Returns what gives it back. Throws DataDirInUseError.
 */
export function claimDataDir(directory: string): () => void {
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
      throw new DataDirInUseError(`The data folder ${directory} is in use by another server (process ${pid})`);
    }
    rmSync(file, { force: true });
  }
  throw new DataDirInUseError(`The data folder ${directory} is being taken by another server`);
}

/** The key ring kept in the data folder; null when there is none. */
export function readMasterKeys(directory: string): string | null {
  const file = masterKeysFile(directory);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null;
}

/** Keeps the new key ring in the data folder, for nobody else to read, and returns it. */
export function makeMasterKeys(directory: string, ring: string): string {
  writeFileSync(masterKeysFile(directory), `${ring}\n`, { mode: 0o600, flag: 'wx' });
  return ring;
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
