import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** The message says what to install. Callers decide whether to skip or fail. */
export class ToolUnavailableError extends Error {
  override readonly name = 'ToolUnavailableError';
}

/** The message contains the end of the output. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError';
}

const progressIntervalMs = 20_000;
const outputTailChars = 4_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Writes one line about the toolchain to stderr, because stdout is for the caller's output. */
export function report(line: string): void {
  process.stderr.write(`toolchain: ${line}\n`);
}

/** Every 20 s, followed by the text of `more`. */
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

/** The absolute path on PATH or in `extraDirs`; null if there is none. */
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

/** Options of `runCommand`. */
export interface CommandOptions {
  cwd?: string;
  env?: Record<string, string>;
}

/** Runs a command, with low priority if `nice` exists, and returns its stdout. Throws CommandFailedError. */
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
      throw new CommandFailedError(`${program} ${args.join(' ')} exited with ${exitCode}:\n${tail}`);
    }
    return stdout;
  } finally {
    running.delete(child);
  }
}
