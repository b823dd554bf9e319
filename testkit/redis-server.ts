import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { type ServerHandle, startOnFreePort, startServer } from './server-process.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

/** A running Redis on loopback. */
export interface RedisServer extends ServerHandle {
  /** URL for Holdfast. */
  url: string;
  /** URL with all permissions. */
  adminUrl: string;
  host: string;
  port: number;
}

const shippedScript = path.join(import.meta.dirname, '../deploy/redis/start.sh');

/** Starts Redis as the compose file does, with a restricted user for Holdfast. */
export async function startRestrictedRedis(options: { extraArgs?: readonly string[] } = {}): Promise<RedisServer> {
  await ensureToolchain({ only: ['redis-server'] });
  return startOnFreePort(async (port) => {
    const server = await startServer({
      name: 'redis',
      file: '/bin/sh',
      args: (dataDir) => [
        ...[shippedScript, '--bind', '127.0.0.1', '--port', String(port), '--dir', dataDir],
        ...(options.extraArgs ?? []),
      ],
      env: { REDIS_PASSWORD: 'for holdfast', REDIS_ADMIN_PASSWORD: 'for-admins' },
      isReady: () => answersPing(port),
    });
    const address = `127.0.0.1:${port}`;
    const url = `redis://holdfast:${encodeURIComponent('for holdfast')}@${address}`;
    return { url, adminUrl: `redis://admin:for-admins@${address}`, host: '127.0.0.1', port, ...server };
  });
}

/** It evicts nothing and stores nothing on disk, as our queues require. */
export async function startRedisServer(options: { extraArgs?: readonly string[] } = {}): Promise<RedisServer> {
  const file = (await ensureToolchain({ only: ['redis-server'] }))['redis-server'];
  return startOnFreePort(async (port) => {
    const server = await startServer({
      name: 'redis',
      file,
      args: (dataDir) => [
        ...['--bind', '127.0.0.1', '--port', String(port), '--dir', dataDir],
        ...['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'],
        ...(options.extraArgs ?? []),
      ],
      isReady: () => answersPing(port),
    });
    const url = `redis://127.0.0.1:${port}`;
    return { url, adminUrl: url, host: '127.0.0.1', port, ...server };
  });
}

/** A request for a password counts, too, because that Redis is up. */
export async function answersPing(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  const signal = AbortSignal.timeout(5_000);
  try {
    await once(socket, 'connect', { signal });
    socket.write('PING\r\n');
    const [response] = (await once(socket, 'data', { signal })) as [Buffer];
    return /^(\+PONG|-NOAUTH)/.test(response.toString());
  } finally {
    socket.destroy();
  }
}
