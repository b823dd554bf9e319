import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasErrorCode } from './toolchain/error-code.ts';
import { until } from './until.ts';

/** How to start a process of the cluster. */
export interface ProcessSpec {
  name: string;
  file: string;
  /** A function is called at each start. */
  args: readonly string[] | (() => readonly string[]);
  env: Record<string, string>;
  /** Whether the process responds; an error counts as no. */
  isReady(): Promise<boolean>;
  /** Signal for a graceful stop. */
  stopSignal?: NodeJS.Signals;
  /** The process is killed afterwards. */
  stopGraceMs?: number;
}

const readyTimeoutMs = 400_000;
const logTailChars = 400_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) signalFamily(child, 'SIGKILL');
});

/** It can be started again at the same address. It runs in its own process group, so that Ctrl-C in a terminal reaches only us. */
export class ClusterProcess {
  readonly name: string;
  readonly #spec: ProcessSpec;
  readonly #onCrash: (part: ClusterProcess) => void;
  #child: ChildProcess | null = null;
  #isEndExpected = true;
  #output = '';

  constructor(spec: ProcessSpec, onCrash: (part: ClusterProcess) => void) {
    this.name = spec.name;
    this.#spec = spec;
    this.#onCrash = onCrash;
  }

  get isRunning(): boolean {
    return this.#child !== null && !hasEnded(this.#child);
  }

  /** 0 if no process is running. */
  get pid(): number {
    return (this.isRunning && this.#child?.pid) || 0;
  }

  /** Of all runs so far. */
  get log(): string {
    return this.#output;
  }

  /** Waits until the process is ready. `env` is added to its environment for this run. */
  async start(env: Record<string, string> = {}): Promise<void> {
    if (this.isRunning) return;
    const { name, file, args, isReady } = this.#spec;
    const child = spawn(file, typeof args === 'function' ? args() : args, {
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...this.#spec.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    this.#child = child;
    // Until the process is ready, this call reports its end.
    this.#isEndExpected = true;
    running.add(child);
    child.once('exit', () => {
      running.delete(child);
      if (!this.#isEndExpected && this.#child === child) this.#onCrash(this);
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-logTailChars);
      });
    }
    await once(child, 'spawn');
    await until(
      () => {
        if (hasEnded(child))
          throw new Error(`${name} ended with ${child.exitCode ?? child.signalCode}:\n${this.#output.slice(-4_000)}`);
        return isReady().catch(() => false);
      },
      `${name} answers`,
      { timeoutMs: readyTimeoutMs, everyMs: 50 },
    );
    this.#isEndExpected = false;
  }

  /** Kills it and its children with SIGKILL. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || hasEnded(child)) return;
    this.#isEndExpected = true;
    const ended = once(child, 'exit');
    signalFamily(child, 'SIGKILL');
    await ended;
  }

  /** Returns false if the process had to be killed after `stopGraceMs`. */
  async stop(): Promise<boolean> {
    const { stopSignal = 'SIGTERM', stopGraceMs = 30_000 } = this.#spec;
    const child = this.#child;
    if (!child || hasEnded(child)) return true;
    this.#isEndExpected = true;
    const ended = once(child, 'exit');
    // A paused process handles the signal only after it resumes.
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

  /** Suspends it: the kernel accepts connections, but nothing responds. */
  pause(): void {
    if (this.#child && this.isRunning) signalFamily(this.#child, 'SIGSTOP');
  }

  resume(): void {
    if (this.#child && this.isRunning) signalFamily(this.#child, 'SIGCONT');
  }
}

/** All descendants, too. Signaling the group is not enough: children of Postgres have their own. */
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

/** Ancestors first. */
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
