import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Settings } from './settings.ts';

/** What a client meets before it is known to be one. */
export interface FrontConfig {
  /** Apart for trusted proxies and for all others. */
  readonly maxConnections: number;
  readonly maxConnectionsPerAddress: number;
  /** From the connection, or the end of the wait for the next request, to the end of a head. */
  readonly headMs: number;
  /** How long a connection is kept without a request. */
  readonly idleMs: number;
  /** PEM files; null: plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
}

type Given = Partial<Settings>;

/** Reads the settings of the front. Of those that are wrong the problems say so. */
export function frontProblems(settings: Given): string[] {
  const problems: string[] = [];
  for (const entry of entriesOf(settings.HOLDFAST_TRUSTED_PROXIES)) {
    if (!parseNetwork(entry))
      problems.push(
        `HOLDFAST_TRUSTED_PROXIES: ${JSON.stringify(entry)} is neither an address nor a network (10.0.0.0/8)`,
      );
  }
  const files = ['HOLDFAST_TLS_CERT_FILE', 'HOLDFAST_TLS_KEY_FILE'] as const;
  const missing = files.filter((name) => settings[name] === undefined);
  if (missing.length === 1)
    problems.push(`${missing[0]}: needed with ${files.find((name) => name !== missing[0])}; TLS needs both`);
  return problems;
}

export function frontConfig(settings: Settings): FrontConfig {
  const { HOLDFAST_TLS_CERT_FILE: certFile, HOLDFAST_TLS_KEY_FILE: keyFile } = settings;
  return {
    maxConnections: settings.HOLDFAST_MAX_CONNECTIONS,
    maxConnectionsPerAddress: settings.HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS,
    headMs: settings.HOLDFAST_HEADERS_TIMEOUT_SECONDS * 1000,
    idleMs: settings.HOLDFAST_KEEP_ALIVE_SECONDS * 1000,
    tls: certFile === undefined || keyFile === undefined ? null : { certFile, keyFile },
  };
}

/** The proxies whose word on their clients' addresses is taken. */
export function trustedProxiesOf(settings: Settings): BlockList {
  const list = new BlockList();
  for (const entry of entriesOf(settings.HOLDFAST_TRUSTED_PROXIES)) {
    const network = parseNetwork(entry);
    if (network) list.addSubnet(network.address, network.bits, isIPv6(network.address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

function entriesOf(text: string | undefined): string[] {
  return (text ?? '').split(/[\s,]+/).filter(Boolean);
}

function parseNetwork(text: string): { address: string; bits: number } | null {
  const [, address = '', given] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  const most = family === 6 ? 128 : 32;
  const bits = given === undefined ? most : Number(given);
  return family === 0 || bits > most ? null : { address, bits };
}
