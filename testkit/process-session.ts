import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

import { hasErrorCode } from './toolchain/error-code.ts';

/**
 * Each of `leaders` has its own session (spawned with `detached`). The CLI's plugins have their own process groups and are adopted by init
 * when the CLI is killed, so neither the group nor the parent finds them, but the session does. Without /proc, this falls back to the
 * parent.
 */
async function listSession(leaders: readonly number[]): Promise<number[]> {
  if (process.platform !== 'linux') return listDescendants(leaders);
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  // A process may end between the listing and the read.
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return pids.map(Number).filter((_, at) => {
    // pid (comm) state ppid pgrp session …, where comm may contain spaces and parentheses.
    const text = stats[at] ?? '';
    const [state, , , session] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return state !== 'Z' && leaders.includes(Number(session));
  });
}

/** Kills all processes started by any of `leaders` with SIGKILL, like a crash of the machine. */
export async function killSession(leaders: readonly number[]): Promise<void> {
  // Session 0 belongs to the kernel, so skip leaders that never started.
  const started = leaders.filter((pid) => pid > 1);
  if (started.length === 0) return;
  for (const pid of await listSession(started)) sendSignal(pid, 'SIGKILL');
}

/** Returns false if the process no longer exists. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (hasErrorCode(error, 'ESRCH')) return false;
    throw error;
  }
}

/**
 * Returns once all threads have stopped: on a busy machine, the process might otherwise still send a response. Without /proc, it only sends
 * the signal.
 */
export function pauseProcess(pid: number): void {
  if (!sendSignal(pid, 'SIGSTOP') || process.platform !== 'linux') return;
  const deadline = Date.now() + 5_000;
  while (Date.now() < deadline && !threadStates(pid).every((state) => 'TtZ'.includes(state))) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }
}

function threadStates(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      return text[text.lastIndexOf(')') + 2] ?? 'Z';
    });
  } catch {
    // A thread ended between the listing and the read: try again.
    return ['?'];
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
