import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

import { hasErrorCode } from '../toolchain/error-code.ts';

/**
 * The processes started from any of `leaders`, each of which leads a session of its own (spawned with `detached`).
 * The CLI's plugins lead process groups of their own and are adopted by init when the CLI is killed, so neither the
 * group nor the parent finds them; the session does. Without /proc it is the parent that has to do.
 */
export async function listSession(leaders: readonly number[]): Promise<number[]> {
  if (process.platform !== 'linux') return listDescendants(leaders);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  // A process may end between the listing and the read.
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return pids.map(Number).filter((_, at) => {
    // pid (comm) state ppid pgrp session …, where comm may hold spaces and brackets.
    const text = stats[at] ?? '';
    const [state, , , session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return state !== 'Z' && leaders.includes(Number(session));
  });
}

/** Kills everything that was started from any of `leaders` with SIGKILL, as when the machine goes down. */
export async function killSession(leaders: readonly number[]): Promise<void> {
  // Session 0 is the kernel's own, so a leader that never started must not be looked for.
  const started = leaders.filter((pid) => pid > 1);
  if (started.length === 0) return;
  for (const pid of await listSession(started)) sendSignal(pid, 'SIGKILL');
}

/** Sends a signal; false when the process is gone already. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ESRCH')) return false;
    throw error;
  }
}

async function listDescendants(roots: readonly number[]): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const rows = stdout.split('\n').map((row) => row.trim().split(/\s+/).map(Number));
  const found = new Set(roots);
  let before = 0;
  while (found.size > before) {
    before = found.size;
    for (const [pid, parent] of rows) if (pid !== undefined && found.has(parent ?? 0)) found.add(pid);
  }
  return [...found];
}
