import type { ConnectionOptions } from 'node:tls';
import { ConfigError } from '../config/config.ts';
import { takeTlsFiles } from '../tls/certificates.ts';

export interface PostgresHost {
  /** For logs and messages; without user and password. */
  readonly name: string;
  /** The URL of this server alone, for node-postgres. */
  readonly url: string;
}

/** Determines the required kind of server. */
export type PostgresSetting = 'HOLDFAST_DATABASE_URL' | 'HOLDFAST_DATABASE_REPLICA_URL';

/** False for no TLS. */
export type PostgresTls = ConnectionOptions | false;

/** URLs are interpreted like libpq does. */
export interface PostgresTarget {
  /** At least one, in the order of the URL. */
  readonly hosts: readonly PostgresHost[];
  /** Whether servers that accept no writes are skipped. */
  readonly mustTakeWrites: boolean;
  readonly tls: PostgresTls;
}

const parts =
  /^(?<scheme>postgres(?:ql)?:\/\/)(?<login>[^/?#]*@)?(?<hosts>[^/?#]*)(?<path>[^?#]*)(?:\?(?<query>[^#]*))?$/;
const hostRule = /^(?:\[[0-9A-Fa-f:.%]+\]|[^:\s[\]]*)(?::(?<port>\d{1,5}))?$/;
const attribute = 'target_session_attrs';

/**
 * Returns one URL per server. Holdfast writes, so `target_session_attrs=read-write` is the default; `primary` means the same here, and
 * `any` uses the first server that responds. A replica's URL has one host, which need not accept writes. Throws ConfigError, which never
 * contains the URL.
 */
export function parsePostgresUrl(url: string, setting: PostgresSetting = 'HOLDFAST_DATABASE_URL'): PostgresTarget {
  const wrong = (what: string): ConfigError => new ConfigError(`Invalid settings:\n  ${setting}: ${what}`);
  const isReplica = setting === 'HOLDFAST_DATABASE_REPLICA_URL';
  const groups = parts.exec(url)?.groups;
  if (!groups) throw wrong('is not of the form postgres://user:password@host:5432/name');
  const query = new URLSearchParams(groups['query'] ?? '');
  const wanted = query.get(attribute) ?? (isReplica ? 'standby' : 'read-write');
  if (isReplica && !['standby', 'read-only', 'prefer-standby', 'any'].includes(wanted))
    throw wrong(`${attribute} must be standby, or left out`);
  if (!isReplica && !['read-write', 'primary', 'any'].includes(wanted))
    throw wrong(`${attribute} must be read-write, primary or any: Holdfast writes`);
  query.delete(attribute);
  const tls = takeTls(query, setting, wrong);
  const rest = `${groups['path'] ?? ''}${query.size > 0 ? `?${query}` : ''}`;
  const names = (groups['hosts'] ?? '').split(',');
  if (isReplica && names.length > 1) throw wrong('must name one host');
  for (const name of names) {
    const port = hostRule.exec(name)?.groups?.['port'];
    if (!hostRule.test(name) || (name === '' && names.length > 1) || Number(port ?? 1) > 65_535)
      throw wrong(`${quotable(name, groups['login'])} is not host or host:port`);
  }
  const hosts = names.map((name) => ({
    name: name || query.get('host') || 'localhost',
    url: `${groups['scheme']}${groups['login'] ?? ''}${name}${rest}`,
  }));
  return { hosts, mustTakeWrites: !isReplica && wanted !== 'any', tls };
}

/** A text with a colon and without a login before it may be a login without a host. */
function quotable(host: string, login: string | undefined): string {
  return login === undefined && host.includes(':') ? 'a host' : JSON.stringify(host);
}

/**
 * Applies libpq's meaning of `sslmode` and related parameters, which differs from that of node-postgres. Without them, there is no TLS.
 * `prefer` and `allow` are rejected, because an attacker in between could switch TLS off.
 */
function takeTls(query: URLSearchParams, setting: PostgresSetting, wrong: (what: string) => ConfigError): PostgresTls {
  const hasTlsParameter = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'].some((name) => query.has(name));
  const mode = query.get('sslmode') ?? (hasTlsParameter ? 'verify-full' : 'disable');
  query.delete('sslmode');
  for (const name of ['ssl', 'uselibpqcompat', 'sslnegotiation'])
    if (query.has(name)) throw wrong(`${name} is not supported: use sslmode to choose TLS`);
  const files = takeTlsFiles(query, setting);
  const anyName = { checkServerIdentity: () => undefined };
  switch (mode) {
    case 'disable':
      return false;
    case 'require':
      // libpq also verifies the certificate here if a root certificate is given.
      return files.ca === undefined ? { ...files, rejectUnauthorized: false } : { ...files, ...anyName };
    case 'verify-ca':
      return { ...files, ...anyName };
    case 'verify-full':
      return files;
    default:
      throw wrong('sslmode must be disable, require, verify-ca or verify-full');
  }
}
