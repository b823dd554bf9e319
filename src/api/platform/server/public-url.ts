import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';

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

/** Logs a warning at startup if users reach the service over plain HTTP at an address that others can reach too. */
export function warnAboutPlainHttp({ publicUrl }: Pick<Config, 'publicUrl'>, logger: Logger): void {
  const { protocol, hostname } = new URL(publicUrl);
  if (protocol !== 'http:' || isPrivateHost(hostname.replace(/^\[|\]$/g, ''))) return;
  logger.warn(
    { publicUrl },
    'HOLDFAST_PUBLIC_URL is plain HTTP at a public address: tokens and states can be read in transit; use TLS, here or in a proxy',
  );
}

function isPrivateHost(host: string): boolean {
  if (isIP(host) !== 0) return privateNetworks.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
  return !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa|test)$/i.test(host);
}
