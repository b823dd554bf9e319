import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync } from 'node:fs';

/**
 * A lock that the kernel releases when the last process with the descriptor ends, however it ends. All processes of the running system see it, in
 * any container, and so do other machines on network file systems that support locks.
 */
export interface FileLock {
  /** May be passed to a child, which then holds the lock, too. */
  readonly descriptor: number;
  /** The locked file, as the running system knows it. */
  readonly inode: string;
  release(): void;
}

/** Takes a lock; `held`: another process has it; `unsupported`: locks do not exist here. */
export type TakeLock = (file: string) => FileLock | 'held' | 'unsupported';

/**
 * Locks a file, which is created if needed and stays. Uses the program `flock`, because Node has no such call: a lock belongs to the open file that
 * we share with it, and so stays when the program ends.
 */
export const takeFileLock: TakeLock = (file) => {
  const descriptor = openSync(file, 'a', 0o640);
  let isTaken = false;
  try {
    const { status, stderr } = spawnSync('flock', ['-x', '-n', '3'], {
      stdio: ['ignore', 'ignore', 'pipe', descriptor],
      encoding: 'utf8',
    });
    // It says nothing when another process has the lock; a file system without locks is an error with a message.
    if (status === 1 && stderr === '') return 'held';
    if (status !== 0) return 'unsupported';
    const { dev, ino } = fstatSync(descriptor, { bigint: true });
    isTaken = true;
    return { descriptor, inode: `${dev}:${ino}`, release: () => closeSync(descriptor) };
  } finally {
    if (!isTaken) closeSync(descriptor);
  }
};
