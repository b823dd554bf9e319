import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Settings } from './settings.ts';
import type { Tuning } from './tuning.ts';

type Given = Partial<Settings>;

/** Also checks the trusted proxies. */
export function httpServerProblems(settings: Given): string[] {
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

/** These limits apply before authentication. */
export function httpServerConfig(settings: Settings, tuning: Tuning) {
  const { HOLDFAST_TLS_CERT_FILE: certFile, HOLDFAST_TLS_KEY_FILE: keyFile } = settings;
  return {
    /** Applies to trusted proxies and to all other clients separately. */
    maxConnections: settings.HOLDFAST_MAX_CONNECTIONS,
    maxConnectionsPerAddress: tuning.maxConnectionsPerAddress,
    /** Maximum time for the headers, from the connection or the first byte of the request. */
    headMs: tuning.headersTimeoutSeconds * 1000,
    idleMs: tuning.keepAliveSeconds * 1000,
    /** PEM files; null for plain HTTP. */
    tls: certFile === undefined || keyFile === undefined ? null : ({ certFile, keyFile } as const),
  } as const;
}

/** Their X-Forwarded-For is trusted. */
export function trustedProxiesOf(settings: Given): BlockList {
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
  const maxBits = family === 6 ? 128 : 32;
  const bits = given === undefined ? maxBits : Number(given);
  return family === 0 || bits > maxBits ? null : { address, bits };
}
