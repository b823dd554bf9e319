import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';

/** A Holdfast command that runs as its own process. */
export interface RunningCommand {
  /** Its output so far. */
  output(): string;
  /** Resolves when it has ended by itself. */
  ended(): Promise<{ readonly code: number | null; readonly stderr: string }>;
  stop(): Promise<void>;
}

/** Starts a command with these settings and no others. The caller must stop it. */
export function startCommand(words: readonly string[], settings: Readonly<Record<string, string>>): RunningCommand {
  const env = { PATH: process.env['PATH'], HOME: tmpdir(), ...settings };
  const child = spawn(process.execPath, [holdfastProgram, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = once(child, 'close');
  return {
    output: () => stdout + stderr,
    ended: async () => {
      const [code] = (await closed) as [number | null];
      return { code, stderr: stderr.replace(/^\{.*\n/gm, '') };
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await closed;
    },
  };
}
