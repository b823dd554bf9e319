import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync } from 'node:fs';

/**
 * The kernel releases the lock when the last process with the descriptor ends, however it ends. All processes of the running system see it,
 * in any container, and so do other machines on network file systems with locks.
 */
export interface FileLock {
  /** May be passed to a child, which then also holds the lock. */
  readonly descriptor: number;
  /** Identifies the locked file on the running system. */
  readonly inode: string;
  release(): void;
}

/** `held`: another process has the lock. `unsupported`: there are no locks here. */
export type TakeLock = (file: string) => FileLock | 'held' | 'unsupported';

/**
 * Leaves the file behind. Uses the program `flock`, because Node has no such call. A lock belongs to the open file, which we share with the
 * program, and therefore remains when the program ends.
 */
export const takeFileLock: TakeLock = (file) => {
  const descriptor = openSync(file, 'a', 0o640);
  let isTaken = false;
  try {
    const { status, stderr } = spawnSync('flock', ['-x', '-n', '3'], {
      stdio: ['ignore', 'ignore', 'pipe', descriptor],
      encoding: 'utf8',
    });
    // `flock` prints nothing if another process has the lock, and an error on a file system without locks.
    if (status === 1 && stderr === '') return 'held';
    if (status !== 0) return 'unsupported';
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    isTaken = true;
    return { descriptor, inode: `${dev}:${ino}`, release: () => closeSync(descriptor) };
  } finally {
    if (!isTaken) closeSync(descriptor);
  }
};
