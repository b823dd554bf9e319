import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** The processes below `pid`, parents before children. The CLI's plugins lead process groups of their own. */
export async function listDescendants(pid: number): Promise<number[]> {
  const parents = process.platform === 'linux' ? await parentsFromProc() : await parentsFromPs();
  const found: number[] = [];
  let level = [pid];
  while (level.length > 0) {
    level = [...parents].filter(([, parent]) => level.includes(parent)).map(([child]) => child);
    found.push(...level);
  }
  return found;
}

/** Kills a process and all below it with SIGKILL, as when a machine goes down. */
export async function killTree(pid: number): Promise<void> {
  const descendants = await listDescendants(pid);
  for (const each of [pid, ...descendants]) sendSignal(each, 'SIGKILL');
}

/** Sends a signal; false when the process is gone already. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

async function parentsFromProc(): Promise<Map<number, number>> {
  const names = await readdir('/proc');
  const pids = names.filter((name) => /^\d+$/.test(name));
  // A process may end between the listing and the read.
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)));
  const parents = new Map<number, number>();
  stats.forEach((text, at) => {
    // pid (comm) state ppid …, where comm may hold spaces and brackets.
    const parent = text?.slice(text.lastIndexOf(')') + 2).split(' ')[1];
    if (parent !== undefined) parents.set(Number(pids[at]), Number(parent));
  });
  return parents;
}

async function parentsFromPs(): Promise<Map<number, number>> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const rows = stdout.trim().split('\n');
  return new Map(
    rows.map((row) => {
      const [pid, parent] = row.trim().split(/\s+/).map(Number);
      return [pid ?? 0, parent ?? 0];
    }),
  );
}
