import { ConfigError } from '../config/config.ts';
import { type TlsFiles, takeTlsFiles } from '../tls/certificates.ts';

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

/** Login and database belong to Redis itself, not to the sentinels. */
export interface RedisTarget {
  readonly layout: 'sentinel' | 'cluster';
  readonly hosts: readonly RedisHost[];
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  /** Null without TLS. */
  readonly tls: TlsFiles | null;
  /** The name of the master at the sentinels; empty for a cluster. */
  readonly master: string;
  readonly sentinelUsername: string | null;
  readonly sentinelPassword: string | null;
  /** Without the login. */
  readonly address: string;
}

const parts =
  /^redis(?<tls>s?)\+(?<layout>sentinel|cluster):\/\/(?:(?<login>[^/?#]*)@)?(?<hosts>[^/?#@]+)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/;
const hostRule = /^(?:\[(?<address>[0-9A-Fa-f:.%]+)\]|(?<name>[^:\s[\]]+))(?::(?<port>\d{1,5}))?$/;
const defaultPorts = { sentinel: 26_379, cluster: 6379 } as const;

/**
 * Takes `redis+sentinel://user:password@a:26379,b:26379/master/0` or `redis+cluster://user:password@a:6379,b:6379`, with `rediss` for TLS.
 * Returns null for the URL of a single server, which ioredis parses. Throws ConfigError, which never contains the URL.
 */
export function parseRedisUrl(url: string): RedisTarget | null {
  if (/^rediss?:/.test(url)) return null;
  const groups = parts.exec(url)?.groups;
  if (!groups)
    throw wrong('is not of the form redis+sentinel://a:26379,b:26379/master or redis+cluster://a:6379,b:6379');
  const layout = groups['layout'] as RedisTarget['layout'];
  const hosts = (groups['hosts'] ?? '')
    .split(',')
    .map((text) => parseHost(text, defaultPorts[layout], groups['login'] !== undefined));
  const path = (groups['path'] ?? '')
    .split('/')
    .slice(1)
    .filter((part) => part !== '');
  const master = layout === 'sentinel' ? path.shift() : '';
  if (master === undefined) throw wrong('the name of the master is missing: redis+sentinel://host:26379/master');
  const [database = '0', ...rest] = path;
  if (!/^\d{1,5}$/.test(database) || rest.length > 0) throw wrong('the database is not a number');
  if (layout === 'cluster' && database !== '0') throw wrong('a cluster has no databases');
  const query = new URLSearchParams(groups['query'] ?? '');
  const take = (name: string): string | null => {
    const value = query.get(name);
    query.delete(name);
    return layout === 'sentinel' ? value : null;
  };
  const [username, password] = parseLogin(groups['login'] ?? '');
  return {
    layout,
    hosts,
    username,
    password,
    database: Number(database),
    tls: groups['tls'] === 's' ? takeTlsFiles(query, 'HOLDFAST_REDIS_URL') : null,
    master: decoded(master),
    sentinelUsername: take('sentinelUsername'),
    sentinelPassword: take('sentinelPassword'),
    address: groups['hosts'] ?? '',
  };
}

function parseHost(text: string, defaultPort: number, hasLogin: boolean): RedisHost {
  const { address, name, port } = hostRule.exec(text)?.groups ?? {};
  const host = address ?? name;
  // A text with a colon and without a login before it may be a login without a host.
  const quoted = hasLogin || !text.includes(':') ? JSON.stringify(text) : 'a host';
  if (host === undefined || Number(port ?? 1) > 65_535) throw wrong(`${quoted} is not host or host:port`);
  return { host, port: Number(port ?? defaultPort) };
}

/** A login without a colon is a user name, as in all URLs. */
function parseLogin(login: string): [string | null, string | null] {
  const [user = '', ...password] = login.split(':');
  return [user === '' ? null : decoded(user), password.length === 0 ? null : decoded(password.join(':'))];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong('contains a % that encodes nothing');
  }
}

function wrong(what: string): ConfigError {
  return new ConfigError(`Invalid settings:\n  HOLDFAST_REDIS_URL: ${what}`);
}
