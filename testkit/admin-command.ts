import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { holdfastProgram } from './holdfast-program.ts';

export type AdminTarget = { readonly dataDir: string } | { readonly databaseUrl: string };

/** The password that `setPassword` gives. */
export const webPassword = 'correct horse battery';

/** Runs `holdfast admin` on the data of a server, and returns its output. Throws if it fails. */
export async function runAdmin(target: AdminTarget, ...args: string[]): Promise<string> {
  return holdfastOutput(target, {}, 'admin', ...args);
}

/** Runs a command of `holdfast` on the data of a server, with these variables. Returns its output. Throws if it fails. */
export async function holdfastOutput(
  target: AdminTarget,
  env: Readonly<Record<string, string>>,
  ...words: string[]
): Promise<string> {
  return run(target, env, words, '');
}

/** Tests sign in with this password. */
export async function setPassword(target: AdminTarget, login: string): Promise<void> {
  await run(target, {}, ['admin', 'user', 'set-password', login], `${webPassword}\n`);
}

async function run(
  target: AdminTarget,
  env: Readonly<Record<string, string>>,
  words: readonly string[],
  input: string,
): Promise<string> {
  const place =
    'dataDir' in target ? { HOLDFAST_DATA_DIR: target.dataDir } : { HOLDFAST_DATABASE_URL: target.databaseUrl };
  const child = spawn(process.execPath, [holdfastProgram, ...words], {
    env: { PATH: process.env['PATH'], ...place, ...env },
    stdio: 'pipe',
  });
  child.stdin.end(input);
  const [printed, complaints, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  if (code !== 0) throw new Error(`holdfast ${words.join(' ')} exited with ${code}:\n${printed}${complaints}`);
  return printed;
}
