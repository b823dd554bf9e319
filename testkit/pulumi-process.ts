import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import { killSession, sendSignal } from './process-session.ts';

/** `exitCode` is null if a signal ended the run. */
export interface CliResult {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  durationMs: number;
}

/** How to start the CLI. */
export interface CliStart {
  file: string;
  args: readonly string[];
  cwd: string;
  env: Record<string, string>;
  input?: string;
}

const outputGraceMs = 2_000;
const longOutputGraceMs = 60_000;

/** A running CLI. */
export class CliProcess {
  readonly pid: number;
  readonly args: readonly string[];
  /** Whatever the result. Rejects only if the CLI could not be started. */
  readonly done: Promise<CliResult>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #stdout = '';
  #stderr = '';

  constructor(start: CliStart) {
    const startedAt = performance.now();
    this.args = start.args;
    // A separate session, so that Ctrl-C in the terminal of the tests does not reach it.
    this.#child = spawn(start.file, start.args, {
      cwd: start.cwd,
      env: start.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    this.pid = this.#child.pid ?? 0;
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    // The CLI may exit without reading its input.
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdin.end(start.input ?? '');
    this.done = this.#finish(startedAt);
  }

  /** Standard output so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** Standard error so far. */
  get stderr(): string {
    return this.#stderr;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Like Ctrl-C: the first SIGINT requests a graceful stop, the second one an immediate stop. */
  interrupt(): void {
    if (this.running) sendSignal(this.pid, 'SIGINT');
  }

  /** Only the CLI, with SIGKILL. The test provider exits at once; the language host runs until `killAll`. */
  async kill(): Promise<CliResult> {
    if (this.running) sendSignal(this.pid, 'SIGKILL');
    return this.done;
  }

  /** Kills the CLI, the language host and the providers, like a crash of the machine. */
  async killAll(): Promise<CliResult> {
    await killSession([this.pid]);
    return this.done;
  }

  /** Suspends the CLI (SIGSTOP), like closing a laptop. */
  pause(): void {
    if (this.running) sendSignal(this.pid, 'SIGSTOP');
  }

  /** Resumes a suspended CLI. */
  resume(): void {
    if (this.running) sendSignal(this.pid, 'SIGCONT');
  }

  async #finish(startedAt: number): Promise<CliResult> {
    const closed = new Promise<void>((resolve) => this.#child.once('close', resolve));
    const [exitCode, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code, sig) => resolve([code, sig]));
    });
    const durationMs = performance.now() - startedAt;
    // A plugin that outlives a killed CLI may keep the pipes open. The output of a CLI that exited by itself is read to
    // the end, which can take long on a busy machine.
    const graceMs = signal === null ? longOutputGraceMs : outputGraceMs;
    await Promise.race([closed, sleep(graceMs, undefined, { ref: false })]);
    return { exitCode, signal, stdout: this.#stdout, stderr: this.#stderr, durationMs };
  }
}
