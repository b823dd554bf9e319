import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { masterKeys, type TestDatabase } from './test-app.ts';
import { until } from './until.ts';

/** Its own process with its own memory. */
export interface ServerChild extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly pid: number;
  readonly port: number;
  /** Of the management listener; empty when there is no separate one. */
  readonly management: string;
  /** Log lines so far. */
  lines(): { level: string; msg: string }[];
  /** Resets the peak of its memory. */
  resetPeak(): void;
  /** Peak resident memory since then, in MB (Linux). */
  peakMb(): number;
  readonly hasEnded: () => boolean;
}

/** Starts a server on a database with free ports and waits until it listens. `nodeFlags` are added to the options of Node. */
export async function startServerChild(
  database: TestDatabase,
  settings: Readonly<Record<string, string>> = {},
  nodeFlags: readonly string[] = [],
): Promise<ServerChild> {
  const home = mkdtempSync(path.join(tmpdir(), 'holdfast-child-'));
  const child: ChildProcess = spawn(
    process.execPath,
    ['--max-semi-space-size=2', '--heap-growing-percent=50', ...nodeFlags, holdfastProgram, 'server'],
    {
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        HOLDFAST_DATA_DIR: home,
        HOLDFAST_LISTEN: '127.0.0.1:0',
        HOLDFAST_MANAGEMENT_LISTEN: '127.0.0.1:0',
        HOLDFAST_MASTER_KEYS: masterKeys,
        HOLDFAST_DATABASE_URL: database.url,
        HOLDFAST_SHUTDOWN_SECONDS: '5',
        ...settings,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const lines = (): { level: string; msg: string; url?: string; management?: string }[] =>
    output.split('\n').flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line)] : []));
  const stop = async (): Promise<void> => {
    if (!hasEnded()) {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      await exit;
    }
    rmSync(home, { recursive: true, force: true });
  };
  const listening = () => lines().find(({ msg }) => msg === 'listening');
  try {
    await until(() => {
      if (hasEnded()) throw new Error(`the server ended with ${child.exitCode}:\n${output}`);
      return listening() !== undefined;
    }, 'the server listens');
  } catch (error) {
    await stop();
    throw error;
  }
  const pid = child.pid as number;
  return {
    pid,
    port: Number(new URL(listening()?.url ?? '').port),
    management: listening()?.management ?? '',
    lines,
    resetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, '5'),
    peakMb: () => Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024,
    hasEnded,
    [Symbol.asyncDispose]: stop,
  };
}
