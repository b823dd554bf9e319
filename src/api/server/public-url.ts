import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Config } from '../../shared/platform/config/config.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';

const inside = new BlockList();
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const)
  inside.addSubnet(network, bits, 'ipv4');
inside.addAddress('::1', 'ipv6');
inside.addSubnet('fc00::', 7, 'ipv6');
inside.addSubnet('fe80::', 10, 'ipv6');

/** Tells once, at the start, when users reach the service over plain HTTP at an address that others can reach too. */
export function warnOfPlainHttp({ publicUrl }: Pick<Config, 'publicUrl'>, logger: Logger): void {
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol !== 'http:' || isInside(hostname.replace(/^\[|\]$/g, ''))) return;
  logger.warn(
    { publicUrl },
    'HOLDFAST_PUBLIC_URL is plain HTTP at a public address: tokens and states can be read in transit; use TLS, here or in a proxy',
  );
}

function isInside(host: string): boolean {
  if (isIP(host) !== 0) return inside.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
  return !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa|test)$/i.test(host);
}
