import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { pollUntil } from './poll.ts';
import { hasErrorCode } from './toolchain/error-code.ts';

/** How a process of the cluster is started. */
export interface ProcessSpec {
  name: string;
  file: string;
  /** A function is asked at each start. */
  args: readonly string[] | (() => readonly string[]);
  env: Record<string, string>;
  /** Whether it answers by now; a throw counts as no. */
  isReady(): Promise<boolean>;
  /** What asks it to end in good order. */
  stopSignal?: NodeJS.Signals;
  /** Longest time from that signal to its end, in ms. */
  stopGraceMs?: number;
}

const readyTimeoutMs = 180_000;
const logTailChars = 400_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) signalFamily(child, 'SIGKILL');
});

/**
 * A process of the cluster, which can be killed, stopped, paused and started again at the same address. It leads a process
 * group of its own, so that Ctrl-C in a terminal reaches only us.
 */
export class ClusterProcess {
  readonly name: string;
  readonly #spec: ProcessSpec;
  readonly #onCrash: (part: ClusterProcess) => void;
  #child: ChildProcess | null = null;
  #expectedEnd = true;
  #output = '';

  constructor(spec: ProcessSpec, onCrash: (part: ClusterProcess) => void) {
    this.name = spec.name;
    this.#spec = spec;
    this.#onCrash = onCrash;
  }

  get isRunning(): boolean {
    return this.#child !== null && !hasEnded(this.#child);
  }

  /** Of the process that runs now; 0 when none does. */
  get pid(): number {
    return (this.isRunning && this.#child?.pid) || 0;
  }

  /** Its output so far, of earlier runs too. */
  get log(): string {
    return this.#output;
  }

  /** Starts it and waits until it answers; `env` comes on top of its own for this run. */
  async start(env: Record<string, string> = {}): Promise<void> {
    if (this.isRunning) return;
    const { name, file, args, isReady } = this.#spec;
    const child = spawn(file, typeof args === 'function' ? args() : args, {
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...this.#spec.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    // Until it answers, its end is told by the call that started it.
    this.#expectedEnd = true;
    running.add(child);
    child.once('exit', () => {
      running.delete(child);
      if (!this.#expectedEnd && this.#child === child) this.#onCrash(this);
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-logTailChars);
      });
    }
    await once(child, 'spawn');
    await pollUntil(
      `${name} answers`,
      () => {
        if (hasEnded(child))
          throw new Error(`${name} ended with ${child.exitCode ?? child.signalCode}:\n${this.#output.slice(-4_000)}`);
        return isReady().catch(() => false);
      },
      { timeoutMs: readyTimeoutMs, everyMs: 50 },
    );
    this.#expectedEnd = false;
  }

  /** Ends it with SIGKILL, its children too. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || hasEnded(child)) return;
    this.#expectedEnd = true;
    const ended = once(child, 'exit');
    signalFamily(child, 'SIGKILL');
    await ended;
  }

  /** Ends it in good order. Returns false when it had to be killed after its grace. */
  async stop(): Promise<boolean> {
    const { stopSignal = 'SIGTERM', stopGraceMs = 30_000 } = this.#spec;
    const child = this.#child;
    if (!child || hasEnded(child)) return true;
    this.#expectedEnd = true;
    const ended = once(child, 'exit');
    // A paused process handles the signal only after it goes on.
    signalFamily(child, 'SIGCONT');
    child.kill(stopSignal);
    const timer = new AbortController();
    const late = sleep(stopGraceMs, 'late' as const, { signal: timer.signal }).catch(() => 'in time' as const);
    const isLate = (await Promise.race([ended, late])) === 'late';
    timer.abort();
    if (isLate) signalFamily(child, 'SIGKILL');
    await (isLate ? ended : undefined);
    return !isLate;
  }

  async restart(env: Record<string, string> = {}): Promise<void> {
    await this.stop();
    await this.start(env);
  }

  /** Freezes it: connections are accepted by the kernel, nothing is answered. */
  pause(): void {
    if (this.#child && this.isRunning) signalFamily(this.#child, 'SIGSTOP');
  }

  resume(): void {
    if (this.#child && this.isRunning) signalFamily(this.#child, 'SIGCONT');
  }
}

/** Signals the process and all that it has started: children of Postgres lead groups of their own. */
function signalFamily(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || hasEnded(child)) return;
  for (const pid of listFamily(child.pid)) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (!hasErrorCode(error, 'ESRCH')) throw error;
    }
  }
}

/** The process and its descendants, the eldest first. */
function listFamily(pid: number): number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .split('\n')
    .map((row) => row.trim().split(/\s+/).map(Number));
  const family = new Set([pid]);
  let before = 0;
  while (family.size > before) {
    before = family.size;
    for (const [child, parent] of rows) if (child !== undefined && family.has(parent ?? 0)) family.add(child);
  }
  return [...family];
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
