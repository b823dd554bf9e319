import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import Type from 'typebox';
import { isAlive } from '../processes/is-alive.ts';

const nullableText = Type.Union([Type.String(), Type.Null()]);

/** Parts that the system does not provide are null. */
export const ProcessIdentity = Type.Object({
  host: Type.String(),
  /** Differs between machines, and after a restart of the machine. */
  boot: nullableText,
  pidNamespace: nullableText,
  pid: Type.Number(),
  /** Distinguishes the process from another one with a reused id. */
  start: nullableText,
});
export type ProcessIdentity = Type.Static<typeof ProcessIdentity>;

export function ownIdentity(): ProcessIdentity {
  const { boot, pidNamespace } = ownBoot();
  return { host: hostname(), boot, pidNamespace, pid: process.pid, start: startOf(process.pid) };
}

/** `unknown`: the process cannot be observed from here. */
export function fateOf(identity: ProcessIdentity): 'running' | 'ended' | 'unknown' {
  const { boot, pidNamespace } = ownBoot();
  if (boot === null || pidNamespace === null) return 'unknown';
  if (identity.boot !== boot || identity.pidNamespace !== pidNamespace) return 'unknown';
  if (!isAlive(identity.pid)) return 'ended';
  const start = startOf(identity.pid);
  // Processes of other users may be hidden.
  if (start === null) return 'unknown';
  return start === identity.start ? 'running' : 'ended';
}

function ownBoot(): { boot: string | null; pidNamespace: string | null } {
  if (process.platform === 'darwin') {
    const { stdout } = spawnSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' });
    // The system has no process namespaces.
    return { boot: stdout?.trim() || null, pidNamespace: 'only' };
  }
  return {
    boot: orNull(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    pidNamespace: orNull(() => readlinkSync('/proc/self/ns/pid')),
  };
}

function startOf(pid: number): string | null {
  if (process.platform === 'darwin') {
    const { stdout } = spawnSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
    return stdout?.trim() || null;
  }
  // In clock ticks since boot.
  return orNull(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  });
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
