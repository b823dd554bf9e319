import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

const ticksPerSecond = 100;

interface Stat {
  readonly parent: number;
  /** CPU time of the process and its threads, in seconds. */
  readonly own: number;
  /** CPU time of its children that have ended, in seconds. */
  readonly ended: number;
}

/** Returns the CPU time of an embedded server's Postgres and all its connections since its start, in seconds (Linux). */
export async function postgresCpuSeconds(dataDir: string): Promise<number> {
  const pidFile = path.join(dataDir, 'postgres', 'cluster', 'postmaster.pid');
  return postgresCpuSecondsOf(Number((await readFile(pidFile, 'utf8')).split('\n')[0]));
}

/** The same of the Postgres with this process id. */
export async function postgresCpuSecondsOf(postmaster: number): Promise<number> {
  const { own, ended } = (await statOf(postmaster)) ?? { own: 0, ended: 0 };
  let seconds = own + ended;
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await statOf(Number(name)) : null;
    if (stat?.parent === postmaster) seconds += stat.own;
  }
  return seconds;
}

/** Returns null if there is no such process any more. */
async function statOf(pid: number): Promise<Stat | null> {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const seconds = (first: number): number => (Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond;
    return { parent: Number(fields[1]), own: seconds(11), ended: seconds(13) };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}
