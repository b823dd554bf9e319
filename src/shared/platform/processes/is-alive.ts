import { codeOf } from '../errors/causes.ts';

/** Whether a process with this id runs on this machine, possibly as another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
