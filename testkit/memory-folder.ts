import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const parent = '/dev/shm';
const prefix = 'holdfast-';
const tmpfs = 0x0102_1994;
const gibibyte = 2 ** 30;
const diskVariable = 'HOLDFAST_TEST_DISK';

/**
 * On a disk, the system calls for temporary files cost a seventh of the processor time of the tests. The folder is removed at the end of
 * the process, together with folders of killed runs. Does nothing if a folder is already set, if the machine has less than 12 GiB to spare,
 * or if it has no such file system.
 */
export function useMemoryFolder(): void {
  if (process.env['TMPDIR'] !== undefined || process.platform !== 'linux' || spareBytes() < 12 * gibibyte) return;
  for (const name of readdirSync(parent)) removeIfEnded(name);
  const folder = join(parent, `${prefix}${process.pid}`);
  mkdirSync(folder, { recursive: true });
  // Writable by all users, like /tmp: tests start programs as other users.
  chmodSync(folder, 0o1777);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.env[diskVariable] = tmpdir();
  process.env['TMPDIR'] = folder;
}

/** The folder for temporary files that must be on a disk. */
export function diskFolder(): string {
  return process.env[diskVariable] ?? tmpdir();
}

function removeIfEnded(name: string): void {
  const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN;
  if (!Number.isInteger(pid) || existsSync(`/proc/${pid}`)) return;
  try {
    rmSync(join(parent, name), { recursive: true, force: true });
  } catch {
    // The folder belongs to another user.
  }
}

/** Bytes that are available on this machine and on its file system in memory. */
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
