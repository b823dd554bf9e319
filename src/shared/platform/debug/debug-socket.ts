import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rmdir, unlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import { type Logger, logLevels, setLogLevel } from '../logger/logger.ts';

/** Addresses of Unix sockets are limited to 108 bytes, on macOS to 104. */
const maxPathBytes = 103;
const maxBodyBytes = 1_000;
export const maxProfileSeconds = 300;
export const maxLevelSeconds = 86_400;

export const DebugStatus = Type.Object({
  role: Type.String(),
  pid: Type.Integer(),
  upSeconds: Type.Integer(),
  logLevel: Type.String(),
});
export type DebugStatus = Static<typeof DebugStatus>;

const LevelRequest = Type.Object({
  level: Type.Union(logLevels.map((level) => Type.Literal(level))),
  seconds: Type.Integer({ minimum: 1, maximum: maxLevelSeconds }),
});
const ProfileRequest = Type.Object({ seconds: Type.Integer({ minimum: 1, maximum: maxProfileSeconds }) });

interface DebugParts {
  readonly dataDir: string;
  readonly role: string;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

/** All processes with this data directory share the folder. */
export function debugFolder(dataDir: string): string {
  return path.join(dataDir, 'run');
}

/**
 * Only the system user of the process can open the Unix socket. Faults are only logged, because the process also runs without it. A server
 * creates the folder; other processes listen only if it exists. Returns null without a socket.
 */
export async function startDebugSocket(parts: DebugParts): Promise<string | null> {
  const folder = debugFolder(parts.dataDir);
  const file = path.join(folder, `${parts.role}-${process.pid}.sock`);
  if (Buffer.byteLength(file) > maxPathBytes || !existsSync(parts.role === 'server' ? parts.dataDir : folder))
    return null;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const close = await listen(new DebugServer(parts), folder, file);
    parts.lifecycle.onClose('processes', 'debug socket', close);
    return file;
  } catch (error) {
    parts.logger.info({ err: error, file }, 'no debug socket');
    return null;
  }
}

/** No other user can enter the folder until the socket has its mode. */
async function listen(debug: DebugServer, folder: string, file: string): Promise<() => Promise<void>> {
  const server = createServer((request, response) => void debug.answer(request, response));
  const hidden = await mkdtemp(path.join(folder, '.'));
  const first = path.join(hidden, 's');
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(first, resolve);
  });
  server.unref();
  await chmod(first, 0o600);
  await rename(first, file);
  await rmdir(hidden);
  return async () => {
    debug.reset();
    server.close();
    server.closeAllConnections();
    await unlink(file).catch(() => undefined);
  };
}

class DebugServer {
  readonly #parts: DebugParts;
  readonly #usualLevel: string;
  #timer: NodeJS.Timeout | undefined;
  #isBusy = false;

  constructor(parts: DebugParts) {
    this.#parts = parts;
    this.#usualLevel = parts.logger.level;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const call = `${request.method} ${request.url}`;
      const given = await readBody(request);
      if (call === 'GET /') this.#sendStatus(response);
      else if (call === 'POST /log-level' && Value.Check(LevelRequest, given)) this.#setLevel(given, response);
      else if (call === 'POST /cpu-profile' && Value.Check(ProfileRequest, given))
        await this.#alone(response, () => profile(given.seconds, response));
      else if (call === 'POST /heap-snapshot')
        await this.#alone(response, () => pipeline(getHeapSnapshot(), response.writeHead(200)));
      else response.writeHead(400).end('not a call of this release');
    } catch (error) {
      this.#parts.logger.warn({ err: error }, 'debug: call failed');
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end((error as Error).message);
    }
  }

  reset(): void {
    clearTimeout(this.#timer);
    setLogLevel(this.#parts.logger, this.#usualLevel);
  }

  #sendStatus(response: ServerResponse): void {
    const { logger, role } = this.#parts;
    const status: DebugStatus = {
      ...{ role, pid: process.pid, upSeconds: Math.floor(process.uptime()), logLevel: logger.level },
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(status));
  }

  #setLevel({ level, seconds }: Static<typeof LevelRequest>, response: ServerResponse): void {
    const { logger } = this.#parts;
    this.reset();
    const note = (): void => logger.warn({ logLevel: level, seconds }, 'debug: log level changed');
    // Logged at a level that still writes this line.
    const isQuieter = logLevels.indexOf(level) > logLevels.indexOf('warn');
    if (isQuieter) note();
    setLogLevel(logger, level);
    if (!isQuieter) note();
    this.#timer = setTimeout(() => {
      this.reset();
      logger.warn({ level: this.#usualLevel }, 'debug: log level restored');
    }, seconds * 1000).unref();
    this.#sendStatus(response);
  }

  /** Concurrent profiles would measure each other. */
  async #alone(response: ServerResponse, work: () => Promise<unknown>): Promise<void> {
    if (this.#isBusy) {
      response.writeHead(409).end('a profile of this process is being taken');
      return;
    }
    this.#isBusy = true;
    try {
      await work();
    } finally {
      this.#isBusy = false;
    }
  }
}

async function profile(seconds: number, response: ServerResponse): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    const left = new AbortController();
    response.once('close', () => left.abort());
    await sleep(seconds * 1000, undefined, { signal: left.signal }).catch(() => undefined);
    const { profile: taken } = await session.post('Profiler.stop');
    if (!response.destroyed) response.writeHead(200).end(JSON.stringify(taken));
  } finally {
    session.disconnect();
  }
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) {
    text += String(chunk);
    if (text.length > maxBodyBytes) throw new Error('the call is too long');
  }
  return text === '' ? null : JSON.parse(text);
}
