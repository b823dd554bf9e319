import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { findFixedPorts } from './fixed-ports.ts';
import { pauseProcess } from './process-session.ts';
import { until } from './until.ts';

/** A server that tests can start, disturb and stop. */
export interface ServerHandle extends AsyncDisposable {
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
  /** Suspends it: the kernel accepts connections, but nothing responds. */
  pause(): void;
  resume(): void;
  /** Its data stays, so that the server can be restarted. */
  kill(): Promise<void>;
  /** Starts it again with the same address after `kill`. */
  restart(): Promise<void>;
  /** Returns the end of its output so far. */
  log(): string;
}

/** How to start a server. */
export interface ServerSpec {
  name: string;
  file: string;
  args(dataDir: string): readonly string[];
  env?: Record<string, string>;
  /** For the data directory. Default: the system's temporary directory. */
  parentDir?: string;
  /** Whether the server responds; an error counts as no. */
  isReady(): Promise<boolean>;
}

const logTailChars = 100_000;
const readyTimeoutMs = 400_000;
const stopGraceMs = 5_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a server with its own data directory and waits until it is ready. */
export async function startServer(spec: ServerSpec): Promise<ServerHandle> {
  const dataDir = await mkdtemp(join(spec.parentDir ?? tmpdir(), `holdfast-${spec.name}-`));
  let output = '';
  let child: ChildProcess;

  const start = async (): Promise<void> => {
    const started = spawn(spec.file, spec.args(dataDir), {
      env: { PATH: '/usr/bin:/bin', HOME: dataDir, ...spec.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    running.add(started);
    started.once('exit', () => running.delete(started));
    for (const stream of [started.stdout, started.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-logTailChars);
      });
    }
    await once(started, 'spawn');
    await until(
      () => {
        if (hasEnded(started)) throw new Error(`${spec.name} ended with ${started.exitCode}:\n${output}`);
        return spec.isReady().catch(() => false);
      },
      `${spec.name} answers`,
      { timeoutMs: readyTimeoutMs, everyMs: 50 },
    );
  };

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (hasEnded(child)) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    // A suspended process handles signals other than SIGKILL only after it resumes.
    child.kill('SIGCONT');
    const grace = new AbortController();
    const forced = sleep(stopGraceMs, null, { signal: grace.signal }).then(
      () => child.kill('SIGKILL'),
      () => false,
    );
    await ended;
    grace.abort();
    await forced;
  };

  const stop = async (): Promise<void> => {
    await end('SIGTERM');
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };

  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    stop,
    pause: () => {
      if (child.pid !== undefined) pauseProcess(child.pid);
    },
    resume: () => void child.kill('SIGCONT'),
    kill: () => end('SIGKILL'),
    restart: start,
    log: () => output,
    [Symbol.asyncDispose]: stop,
  };
}

/** Retries if another process takes the port in the meantime. */
export async function startOnFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await findFreePort());
    } catch (error) {
      const isPortTaken = error instanceof Error && /address already in use|bind/i.test(error.message);
      if (!isPortTaken || attempt === 3) throw error;
    }
  }
}

/** Returns a loopback port at which no process listens, and that no other test gets. */
export async function findFreePort(): Promise<number> {
  const [port] = (await findFixedPorts(1)) as [number];
  return port;
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
