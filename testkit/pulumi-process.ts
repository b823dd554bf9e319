import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

import { killSession, sendSignal } from './process-session.ts';

/** How a run of the CLI ended. `exitCode` is null when a signal ended it. */
export interface CliResult {
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  durationMs: number;
}

/** What is needed to start the CLI. */
export interface CliStart {
  file: string;
  args: readonly string[];
  cwd: string;
  env: Record<string, string>;
  input?: string;
}

const outputGraceMs = 2_000;
const longOutputGraceMs = 60_000;

/** A run of the CLI under way. */
export class CliProcess {
  readonly pid: number;
  readonly args: readonly string[];
  /** Settles when the CLI has ended, however it ended; rejects only when it could not be started. */
  readonly done: Promise<CliResult>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #stdout = '';
  #stderr = '';

  constructor(start: CliStart) {
    const startedAt = performance.now();
    this.args = start.args;
    // A session of its own, so that a Ctrl-C at the tests' terminal does not reach it unasked.
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
    // The CLI may end without reading its input.
    this.#child.stdin.on('error', () => undefined);
    this.#child.stdin.end(start.input ?? '');
    this.done = this.#finish(startedAt);
  }

  /** What it has printed so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** What it has complained about so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Whether it has not ended yet. */
  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends SIGINT to the CLI, as Ctrl-C does: the first asks for an orderly end, the second for an immediate one. */
  interrupt(): void {
    if (this.running) sendSignal(this.pid, 'SIGINT');
  }

  /** Kills the CLI alone with SIGKILL. The test provider follows at once, the language host lives on until `killAll`. */
  async kill(): Promise<CliResult> {
    if (this.running) sendSignal(this.pid, 'SIGKILL');
    return this.done;
  }

  /** Kills the CLI, the language host and the providers, as when the machine goes down. */
  async killAll(): Promise<CliResult> {
    await killSession([this.pid]);
    return this.done;
  }

  /** Stops the CLI in its tracks (SIGSTOP), as a laptop that is closed. */
  pause(): void {
    if (this.running) sendSignal(this.pid, 'SIGSTOP');
  }

  /** Lets a paused CLI go on. */
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
    // A plugin that outlives a killed CLI may hold the pipes open. What one has printed that came to its own end is read to the end,
    // which takes its time on a busy machine.
    const graceMs = signal === null ? longOutputGraceMs : outputGraceMs;
    await Promise.race([closed, sleep(graceMs, undefined, { ref: false })]);
    return { exitCode, signal, stdout: this.#stdout, stderr: this.#stderr, durationMs };
  }
}
