import { BlockList, isIP, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Config } from './config.ts';

type Exposed = Pick<Config, 'front' | 'listen' | 'managementListen' | 'publicUrl' | 'trustedProxies'>;
type Address = Config['listen'];

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const privateNetworks = new BlockList();
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv4');
privateNetworks.addAddress('::1', 'ipv6');
privateNetworks.addSubnet('fc00::', 7, 'ipv6');
privateNetworks.addSubnet('fe80::', 10, 'ipv6');

export function isLoopback(host: string): boolean {
  return isIn(loopback, host) ?? /^(?:.+\.)?localhost$/i.test(host);
}

export function areLoopback({ rules }: BlockList): boolean {
  return rules.every((rule) => {
    const [, address = '', bits = ''] = /([^\s/]+)\/(\d+)$/.exec(rule) ?? [];
    return isIn(loopback, address) === true && Number(bits) >= 8;
  });
}

/** Lists settings that expose tokens and states in transit, or the metrics. `addresses` are those of this machine, for 0.0.0.0. */
export function listExposures(config: Exposed, addresses: readonly string[] = ownAddresses()): string[] {
  const { front, listen, managementListen, publicUrl, trustedProxies } = config;
  const found: string[] = [];
  // A proxy on this machine does not need a listener that other machines can reach.
  if (front.tls === null && areLoopback(trustedProxies) && !isLoopback(listen.host))
    found.push(
      `HOLDFAST_LISTEN: other machines reach ${textOf(listen)} over plain HTTP, so tokens and states can be read in transit; ${
        trustedProxies.rules.length > 0
          ? 'listen on 127.0.0.1, because HOLDFAST_TRUSTED_PROXIES names a proxy on this machine only'
          : 'set HOLDFAST_TLS_CERT_FILE and HOLDFAST_TLS_KEY_FILE, or name the proxy that terminates TLS in HOLDFAST_TRUSTED_PROXIES'
      }`,
    );
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol === 'http:' && !isPrivate(hostname))
    found.push(
      `HOLDFAST_PUBLIC_URL: ${publicUrl} is plain HTTP at a public address, so tokens and states can be read in transit; use TLS, here or in a proxy`,
    );
  return [...found, ...listManagementExposures(managementListen ?? listen, addresses)];
}

export const managementSetting = 'HOLDFAST_MANAGEMENT_LISTEN';

/** Describes a management listener that can be reached from outside a private network. */
export function listManagementExposures(listen: Address, addresses: readonly string[] = ownAddresses()): string[] {
  const bound = isEvery(listen.host) ? addresses : [listen.host];
  const reached = bound.find((address) => !isPrivate(address));
  if (reached === undefined) return [];
  return [
    `${managementSetting}: metrics and details of the health are open to everyone who reaches ${reached}, without a login; listen on an address of a private network`,
  ];
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
}

function isEvery(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

function isPrivate(host: string): boolean {
  return (
    isIn(privateNetworks, host) ??
    (!host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa|test)$/i.test(host))
  );
}

/** Returns null if the host is a name. */
function isIn(list: BlockList, host: string): boolean | null {
  const address = host.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  return isIP(address) === 0 ? null : list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

function textOf({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}
