import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { findFixedPorts } from './fixed-ports.ts';
import { pollUntil } from './poll.ts';
import { answersPing } from './redis-server.ts';
import { type ServerHandle, startServer } from './server-process.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

/** One Redis process of a group. */
export interface RedisMember extends ServerHandle {
  readonly port: number;
}

/** Several Redis processes that Holdfast reaches by one URL. All want a password. */
export interface RedisGroup extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly url: string;
  /** The servers with data. */
  readonly servers: readonly RedisMember[];
  readonly sentinels: readonly RedisMember[];
}

/** Password of the servers, and that of the sentinels. */
export const groupPassword = 'for holdfast';
export const sentinelPassword = 'for sentinels';
const masterName = 'main';

const dataArgs = [
  ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'],
  ...['--requirepass', groupPassword, '--masterauth', groupPassword, '--repl-diskless-sync-delay', '0'],
];

/** A master, a replica, and two sentinels that replace the master one second after it stops answering. */
export async function startRedisWithSentinels(): Promise<RedisGroup> {
  const ports = await findFixedPorts(4);
  const [master, replica, ...sentinelPorts] = ports as [number, number, number, number];
  const members: RedisMember[] = [];
  try {
    members.push(await startMember('redis', master, () => [...dataArgs]));
    members.push(await startMember('redis', replica, () => [...dataArgs, '--replicaof', '127.0.0.1', String(master)]));
    const config = [
      `sentinel monitor ${masterName} 127.0.0.1 ${master} 1`,
      `sentinel auth-pass ${masterName} "${groupPassword}"`,
      `sentinel down-after-milliseconds ${masterName} 1000`,
      `sentinel failover-timeout ${masterName} 5000`,
      `requirepass "${sentinelPassword}"`,
    ].join('\n');
    for (const port of sentinelPorts) {
      const args = (dataDir: string): string[] => {
        const file = path.join(dataDir, 'sentinel.conf');
        writeFileSync(file, `${config}\n`, { flag: 'w' });
        return [file, '--sentinel', '--bind', '127.0.0.1'];
      };
      members.push(await startMember('sentinel', port, args));
    }
  } catch (error) {
    await stopAll(members);
    throw error;
  }
  const login = `:${encodeURIComponent(groupPassword)}@`;
  const hosts = sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',');
  return {
    url: `redis+sentinel://${login}${hosts}/${masterName}?sentinelPassword=${encodeURIComponent(sentinelPassword)}`,
    servers: members.slice(0, 2),
    sentinels: members.slice(2),
    [Symbol.asyncDispose]: () => stopAll(members),
  };
}

/** Three masters, each with a third of the slots, and no replicas. */
export async function startRedisCluster(): Promise<RedisGroup> {
  const ports = await findFixedPorts(6);
  const servers: RedisMember[] = [];
  try {
    for (let at = 0; at < 3; at++) {
      const clusterPort = String(ports[at + 3]);
      servers.push(
        await startMember('redis', ports[at] as number, () => [
          ...dataArgs,
          ...['--cluster-enabled', 'yes', '--cluster-port', clusterPort, '--cluster-node-timeout', '5000'],
        ]),
      );
    }
    const last = 16_383;
    for (const [at, { port }] of servers.entries()) {
      const range = [Math.ceil((at * last) / 3) + (at > 0 ? 1 : 0), Math.ceil(((at + 1) * last) / 3)].map(String);
      await command(port, ['CLUSTER', 'ADDSLOTSRANGE', ...range]);
      const other = servers[0] as RedisMember;
      if (at > 0) await command(port, ['CLUSTER', 'MEET', '127.0.0.1', String(other.port), String(ports[3])]);
    }
    await untilClusterWorks(servers);
  } catch (error) {
    await stopAll(servers);
    throw error;
  }
  const hosts = servers.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`);
  return {
    url: `redis+cluster://:${encodeURIComponent(groupPassword)}@${hosts.join(',')}`,
    servers,
    sentinels: [],
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}

/** Waits until every server of the cluster knows all others, and that all slots are served. */
export async function untilClusterWorks(servers: readonly RedisMember[]): Promise<void> {
  await pollUntil('the cluster works', async () => {
    const infos = await Promise.all(servers.map(({ port }) => command(port, ['CLUSTER', 'INFO'])));
    return infos.every((info) => /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info));
  });
}

/** Runs a command on one server and returns what `redis-cli` prints. */
export async function command(port: number, words: readonly string[], password = groupPassword): Promise<string> {
  const { Redis } = await import('ioredis');
  const redis = new Redis({ host: '127.0.0.1', port, password, retryStrategy: () => null, lazyConnect: true });
  redis.on('error', () => {});
  try {
    await redis.connect();
    const [name, ...rest] = words as [string, ...string[]];
    return String(await redis.call(name, ...rest));
  } finally {
    redis.disconnect();
  }
}

async function startMember(name: string, port: number, args: (dataDir: string) => string[]): Promise<RedisMember> {
  const file = (await ensureToolchain({ only: ['redis-server'] }))['redis-server'];
  const server = await startServer({
    name,
    file,
    args: (dataDir) => [...args(dataDir), '--port', String(port), '--dir', dataDir],
    isReady: () => answersPing(port),
  });
  return { port, ...server };
}

async function stopAll(members: readonly RedisMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.stop()));
}
