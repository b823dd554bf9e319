import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The checkout. */
export const root = path.join(import.meta.dirname, '../..');

/** The default time of all files, in seconds since 1970: the time that npm pack uses. */
const npmTime = 499_162_500;

/** Runs a program and returns what it prints. Ends this process if it fails. */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): string {
  const { error, status, stdout } = spawnSync(program, args, {
    cwd: options.cwd ?? root,
    encoding: 'utf8',
    env: { ...process.env, ...options.env },
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (error) throw error;
  if (status !== 0) {
    console.error(`${stdout}\n${program} ${args.join(' ')} has failed`);
    process.exit(status ?? 1);
  }
  return stdout;
}

/** The time of all packaged files: SOURCE_DATE_EPOCH, or the time of the commit. */
export function sourceDate(): string {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given) return given;
  const { status, stdout } = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : String(npmTime);
}

/** Puts the files below `from`, or one file, at `to`. `as`: linkSync if nobody else reads the original meanwhile. */
export function place(from: string, to: string, as: (from: string, to: string) => void = copyFileSync): void {
  if (!lstatSync(from).isDirectory()) {
    mkdirSync(path.dirname(to), { recursive: true });
    as(from, to);
    return;
  }
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) place(path.join(from, name), path.join(to, name), as);
}

/** Writes a new file. */
export function put(file: string, content: string, mode = 0o644): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content, { mode, flag: 'wx' });
}

/** Gives files and folders the modes of packages, regardless of the umask with which they were created. */
export function normalizeModes(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) normalizeModes(file);
    else if (entry.isFile()) {
      const wanted = (lstatSync(file).mode & 0o100) === 0 ? 0o644 : 0o755;
      // Changed only if needed, because a link shares its mode with the original.
      if ((lstatSync(file).mode & 0o7777) !== wanted) chmodSync(file, wanted);
    }
  }
}
