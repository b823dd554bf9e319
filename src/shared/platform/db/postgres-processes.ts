import { type ChildProcess, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../logger/logger.ts';
import { EmbeddedPostgresError } from './postgres-binaries.ts';

/** A killed server may have left a Postgres running on the directory. Stops it if it is visible from here. */
export async function stopOrphan(dataDir: string, timeoutMs: number, logger: Logger): Promise<void> {
  const pidFile = path.join(dataDir, 'postmaster.pid');
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0]);
  const state = stateOf(pid, dataDir);
  if (state === 'gone') return;
  if (state === 'running') {
    logger.warn({ pid }, 'a killed server left its Postgres running; stopping it');
    process.kill(pid, 'SIGINT');
  }
  const deadline = Date.now() + timeoutMs;
  while (stateOf(pid, dataDir) !== 'gone') {
    if (Date.now() > deadline)
      throw new EmbeddedPostgresError(`Postgres process ${pid}, left behind by an earlier server, does not stop`);
    await sleep(50);
  }
}

/** `ended`: the process still has its id, because its parent has not read its exit code. A new Postgres would refuse to start beside it. */
function stateOf(pid: number, dataDir: string): 'running' | 'ended' | 'gone' {
  const listing = spawnSync('ps', ['-o', 'stat=,args=', '-p', String(pid)], { encoding: 'utf8' });
  if (listing.status === 0) {
    if (listing.stdout.includes(dataDir)) return 'running';
    return listing.stdout.startsWith('Z') ? 'ended' : 'gone';
  }
  try {
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir)) return 'running';
    return / Z [^)]*$/.test(readFileSync(`/proc/${pid}/stat`, 'utf8')) ? 'ended' : 'gone';
  } catch {
    return 'gone';
  }
}

/** A graceful stop would remove the file of another instance that has started meanwhile. */
export function killWithChildren(postgres: ChildProcess): void {
  const children = postgres.pid === undefined ? [] : childrenOf(postgres.pid);
  // Killed first, because it would start new processes.
  postgres.kill('SIGKILL');
  for (const pid of children) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended.
    }
  }
}

function childrenOf(pid: number): number[] {
  let listed: string;
  try {
    listed = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  } catch {
    const { stdout } = spawnSync('ps', ['-A', '-o', 'ppid=,pid='], { encoding: 'utf8' });
    const lines = (stdout ?? '').split('\n').map((line) => line.trim().split(/\s+/));
    listed = lines.flatMap(([parent, child]) => (parent === String(pid) ? (child ?? []) : [])).join(' ');
  }
  return listed
    .split(' ')
    .map(Number)
    .filter((child) => child > 1);
}
