import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** A tool cannot be had on this machine; the message says what to install. Callers skip or fail as they see fit. */
export class ToolUnavailableError extends Error {
  override readonly name = 'ToolUnavailableError';
}

/** A command of a build ended badly; the message holds the end of its output. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError';
}

const progressIntervalMs = 20_000;
const outputTailChars = 4_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Writes one line about the toolchain to stderr: stdout belongs to whoever asked. */
export function report(line: string): void {
  process.stderr.write(`toolchain: ${line}\n`);
}

/** Runs `work` and says every 20 s that it is still under way, with what `more` has to add. */
export async function withProgress<T>(what: string, work: () => Promise<T>, more?: () => string): Promise<T> {
  const startedAt = Date.now();
  const elapsed = (): number => Math.round((Date.now() - startedAt) / 1000);
  const addition = (): string => (more === undefined ? '' : `; ${more()}`);
  const timer = setInterval(() => report(`${what}, ${elapsed()} s so far${addition()}`), progressIntervalMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** The absolute path of a program on PATH (or in `extraDirs`), or null. */
export async function findOnPath(program: string, extraDirs: readonly string[] = []): Promise<string | null> {
  for (const dir of [...(process.env['PATH'] ?? '').split(delimiter), ...extraDirs]) {
    const path = join(dir, program);
    const found = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (dir !== '' && found) return path;
  }
  return null;
}

/** What `runCommand` runs. */
export interface CommandOptions {
  cwd?: string;
  env?: Record<string, string>;
}

/** Runs a command at low priority where `nice` exists and returns its stdout; throws with the output when it fails. */
export async function runCommand(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const nice = await findOnPath('nice');
  const [file, argv] = nice === null ? [program, [...args]] : [nice, ['-n', '10', program, ...args]];
  const child = spawn(file, argv, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let stdout = '';
  let tail = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    tail = (tail + text).slice(-outputTailChars);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-outputTailChars);
  });
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (exitCode !== 0) {
      throw new CommandFailedError(`${program} ${args.join(' ')} ended with ${exitCode}:\n${tail}`);
    }
    return stdout;
  } finally {
    running.delete(child);
  }
}
