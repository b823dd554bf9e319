import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { Redis } from 'ioredis';
import { findFixedPorts } from './fixed-ports.ts';
import { answersPing } from './redis-server.ts';
import { type ServerHandle, startServer } from './server-process.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';
import { until } from './until.ts';

/** One Redis process of a group. */
export interface RedisMember extends ServerHandle {
  readonly port: number;
}

/** Holdfast reaches the processes by one URL. All require a password. */
export interface RedisGroup extends AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void>;
  readonly url: string;
  /** The servers with data. */
  readonly servers: readonly RedisMember[];
  readonly sentinels: readonly RedisMember[];
}

/** PEM files; `caFile` is of the authority that issued the certificate. */
export interface GroupTls {
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
}

/** Password of the user `holdfast`. The passwords of the servers and sentinels are for each other and for `command`. */
const userPassword = 'for holdfast';
export const groupPassword = 'for the servers';
export const sentinelPassword = 'for sentinels';
const masterName = 'main';
/** The rules of `deploy/redis/start.sh`, with the additions of the operations guide for a cluster. */
const userRules = [
  ...['on', `>${userPassword}`, 'resetkeys', '~holdfast:*', 'resetchannels', '&holdfast:*', '-@all'],
  ...[
    '+@read',
    '+@write',
    '+@connection',
    '+@pubsub',
    '+@transaction',
    '-@dangerous',
    '-scan',
    '-randomkey',
    '-dbsize',
  ],
  ...[
    '+eval',
    '+evalsha',
    '+script|load',
    '+time',
    '+info',
    '+client|list',
    '+cluster|slots',
    '+cluster|info',
    '+asking',
  ],
];

const dataArgs = [
  ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'],
  ...['--requirepass', groupPassword, '--masterauth', groupPassword, '--repl-diskless-sync-delay', '0'],
  ...['--user', 'holdfast', ...userRules],
];

/** A master, a replica, and two sentinels that replace the master one second after it stops answering. */
export async function startRedisWithSentinels(tls?: GroupTls): Promise<RedisGroup> {
  const ports = await findFixedPorts(4);
  const [master, replica, ...sentinelPorts] = ports as [number, number, number, number];
  const members: RedisMember[] = [];
  try {
    members.push(await startMember('redis', master, () => [...dataArgs], tls));
    const following = ['--replicaof', '127.0.0.1', String(master)];
    members.push(await startMember('redis', replica, () => [...dataArgs, ...following], tls));
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
      members.push(await startMember('sentinel', port, args, tls));
    }
  } catch (error) {
    await stopAll(members);
    throw error;
  }
  const login = `holdfast:${encodeURIComponent(userPassword)}@`;
  const hosts = sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',');
  const query = `sentinelPassword=${encodeURIComponent(sentinelPassword)}`;
  return {
    url: tls
      ? `rediss+sentinel://${login}${hosts}/${masterName}?${query}&sslrootcert=${tls.caFile}`
      : `redis+sentinel://${login}${hosts}/${masterName}?${query}`,
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
          ...['--cluster-enabled', 'yes', '--cluster-port', clusterPort, '--cluster-node-timeout', '2000'],
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
    url: `redis+cluster://holdfast:${encodeURIComponent(userPassword)}@${hosts.join(',')}`,
    servers,
    sentinels: [],
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}

/** Every server knows all others, and all slots are served. */
export async function untilClusterWorks(servers: readonly RedisMember[]): Promise<void> {
  await until(async () => {
    const infos = await Promise.all(servers.map(({ port }) => command(port, ['CLUSTER', 'INFO'])));
    return infos.every((info) => /cluster_state:ok/.test(info) && /cluster_known_nodes:3/.test(info));
  }, 'the cluster works');
}

/** Runs a command on one server, which must not use TLS, and returns its answer as text. */
export async function command(port: number, words: readonly string[], password = groupPassword): Promise<string> {
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

/** The names of all keys that each server writes, deletes or lets expire from now on, in the order of `servers`. */
export async function watchWrittenKeys(
  servers: readonly RedisMember[],
): Promise<AsyncDisposable & { readonly keys: readonly Set<string>[] }> {
  const keys = servers.map(() => new Set<string>());
  const subscribers: Redis[] = [];
  const stop = async (): Promise<void> => {
    for (const subscriber of subscribers) subscriber.disconnect();
  };
  try {
    for (const [at, { port }] of servers.entries()) {
      await command(port, ['CONFIG', 'SET', 'notify-keyspace-events', 'EA']);
      const subscriber = new Redis({ host: '127.0.0.1', port, password: groupPassword, retryStrategy: () => null });
      subscribers.push(subscriber);
      subscriber.on('pmessage', (_pattern, _event, key: string) => keys[at]?.add(key));
      await subscriber.psubscribe('__keyevent@*__:*');
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { keys, [Symbol.asyncDispose]: stop };
}

async function startMember(
  name: string,
  port: number,
  args: (dataDir: string) => string[],
  tls?: GroupTls,
): Promise<RedisMember> {
  const file = (await ensureToolchain({ only: ['redis-server'] }))['redis-server'];
  const server = await startServer({
    name,
    file,
    args: (dataDir) => [...args(dataDir), ...(tls ? tlsArgs(port, tls) : ['--port', String(port)]), '--dir', dataDir],
    isReady: () => (tls ? acceptsConnections(port) : answersPing(port)),
  });
  return { port, ...server };
}

function tlsArgs(port: number, { cert, key, caFile }: GroupTls): string[] {
  return [
    ...['--port', '0', '--tls-port', String(port), '--tls-replication', 'yes', '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', caFile],
  ];
}

async function acceptsConnections(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  try {
    await once(socket, 'connect');
    return true;
  } finally {
    socket.destroy();
  }
}

async function stopAll(members: readonly RedisMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.stop()));
}
