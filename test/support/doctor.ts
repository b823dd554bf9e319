import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import path from 'node:path';
import { readRunningUrl } from '../../src/shared/platform/db/embedded-postgres.ts';
import { holdfastProgram } from '../../testkit/holdfast-program.ts';
import { diskFolder } from '../../testkit/memory-folder.ts';
import { findFreePort } from '../../testkit/server-process.ts';
import { until } from './until.ts';

/** Its own process, with durable settings. */
export interface VisitedServer extends AsyncDisposable {
  readonly url: string;
  readonly dataDir: string;
  /** Of the owner of its Postgres. */
  readonly databaseUrl: string;
  /** With which a doctor finds it. */
  readonly settings: Readonly<Record<string, string>>;
}

export async function startVisitedServer(): Promise<VisitedServer> {
  const home = mkdtempSync(path.join(diskFolder(), 'holdfast-doctor-'));
  const dataDir = path.join(home, 'data');
  const settings = {
    HOLDFAST_DATA_DIR: dataDir,
    HOLDFAST_LISTEN: `127.0.0.1:${await findFreePort()}`,
    HOLDFAST_MANAGEMENT_LISTEN: `127.0.0.1:${await findFreePort()}`,
  };
  const env = { PATH: process.env['PATH'], HOME: home, HOLDFAST_SHUTDOWN_SECONDS: '5', ...settings };
  const child = spawn(process.execPath, [holdfastProgram, 'server'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  await until(() => {
    if (child.exitCode !== null) throw new Error(`the server ended:\n${output}`);
    return output.includes('"listening"');
  }, 'the server listens');
  return {
    url: `http://${settings.HOLDFAST_LISTEN}`,
    dataDir,
    databaseUrl: (await readRunningUrl(path.join(dataDir, 'postgres'))) as string,
    settings,
    [Symbol.asyncDispose]: async () => {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      await exit;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** A listener for a test, with its URL. */
export interface Listener extends AsyncDisposable {
  readonly url: string;
}

/** True: the proxy has answered. */
export type Meddle = (incoming: IncomingMessage, response: ServerResponse) => boolean;

/** `holds`: the proxy passes a response on when it is complete. */
export async function openHttpProxy(
  target: string,
  options: {
    readonly meddle?: Meddle;
    readonly holds?: boolean;
    readonly tls?: { readonly cert: string; readonly key: string };
  } = {},
): Promise<Listener> {
  const forward = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (options.meddle?.(incoming, response)) return;
    const { headers, method } = incoming;
    const outgoing = request(`${target}${incoming.url}`, { method, headers, agent: false }, async (answer) => {
      if (!options.holds) {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        return;
      }
      const body = Buffer.concat(await Array.fromAsync(answer as AsyncIterable<Buffer>));
      response.writeHead(answer.statusCode ?? 502, answer.headers).end(body);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  };
  const server: Server = options.tls ? createTlsServer(options.tls, forward) : createServer(forward);
  return listening(server, options.tls ? 'https' : 'http');
}

/** Accepts connections, and never says anything. */
export function openSilence(): Promise<Listener> {
  return listening(
    createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.resume();
    }),
    'tcp',
  );
}

async function listening(
  server: Server | ReturnType<typeof createTcpServer>,
  scheme: 'http' | 'https' | 'tcp',
): Promise<Listener> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
