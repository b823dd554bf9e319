import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6 } from 'node:net';

/**
 * Address of the client that sent the request, without a port, IPv4 in its plain form. X-Forwarded-For counts only as far as
 * trusted proxies wrote it: from the right, the first address that is no trusted proxy is the client.
 */
export function clientAddress(request: IncomingMessage, trustedProxies: BlockList): string {
  let address = plainAddress(request.socket.remoteAddress ?? '');
  const forwarded = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  while (isTrusted(address, trustedProxies)) {
    const next = plainAddress(withoutPort(forwarded.pop()?.trim() ?? ''));
    if (next === '') break;
    address = next;
  }
  return address;
}

/** Whether a connection from this address is one of a trusted proxy. */
export function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return isIP(address) !== 0 && trustedProxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** What one client can easily have: an IPv4 address, or a network of 64 bits with IPv6, where single addresses cost nothing. */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address;
  const [before = '', after] = address.split('%')[0]?.split('::') ?? [];
  const start = before === '' ? [] : before.split(':');
  const end = after === undefined || after === '' ? [] : after.split(':');
  // An IPv4 address at the end stands for two groups.
  const groups = end.length + (end.at(-1)?.includes('.') ? 1 : 0);
  const zeros = after === undefined ? 0 : Math.max(8 - start.length - groups, 0);
  const all = [...start, ...Array<string>(zeros).fill('0'), ...end];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** The address as it is compared: IPv4 that came in the form of IPv6 is IPv4; empty for what is no address. */
export function plainAddress(text: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ?? text;
  return isIP(mapped) === 0 ? '' : mapped;
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](:\d+)?$/.exec(text)?.[1];
  return bracketed ?? (/^[^:]+:\d+$/.test(text) ? text.slice(0, text.indexOf(':')) : text);
}
