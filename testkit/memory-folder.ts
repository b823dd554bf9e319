import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

const parent = '/dev/shm';
const prefix = 'holdfast-';
const tmpfs = 0x0102_1994;
const gibibyte = 2 ** 30;

/**
 * Creates a folder in memory for the temporary files of this run: databases, blobs and programs' homes, whose system
 * calls cost a seventh of the tests' processor time on a disk. It is removed at the end of the process, and with it the
 * folders of runs that were killed. null where the machine has less than 12 GiB to spare, or no such file system.
 */
export function createMemoryFolder(): string | null {
  if (process.platform !== 'linux' || spareBytes() < 12 * gibibyte) return null;
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN;
    if (Number.isInteger(pid) && !existsSync(`/proc/${pid}`))
      rmSync(join(parent, name), { recursive: true, force: true });
  }
  const folder = join(parent, `${prefix}${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Bytes that this machine and its file system in memory have available. */
function spareBytes(): number {
  try {
    const { type, bavail, bsize } = statfsSync(parent);
    if (type !== tmpfs) return 0;
    const kibibytes = /^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1];
    return Math.min(bavail * bsize, Number(kibibytes ?? 0) * 1024);
  } catch {
    return 0;
  }
}
