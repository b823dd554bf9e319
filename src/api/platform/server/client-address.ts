import type { IncomingMessage } from 'node:http';
import { type BlockList, isIP, isIPv6 } from 'node:net';
import { copyOf } from '../../../shared/platform/text/cut-text.ts';

/**
 * Without a port; an IPv4-mapped IPv6 address becomes IPv4. X-Forwarded-For is trusted only as far as trusted proxies wrote it: from the
 * right, the first address that is not a trusted proxy is the client.
 */
export function clientAddress(request: IncomingMessage, trustedProxies: BlockList): string {
  let address = plainAddress(request.socket.remoteAddress ?? '');
  const forwarded = [request.headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  while (isTrusted(address, trustedProxies)) {
    const next = plainAddress(withoutPort(forwarded.pop()?.trim() ?? ''));
    if (next === '') break;
    // Addresses are kept; a slice would keep the whole header.
    address = copyOf(next);
  }
  return address;
}

export function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return isIP(address) !== 0 && trustedProxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** Groups the addresses that one client can easily get: a whole IPv6 /64 network. */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address;
  const [before = '', after] = address.split('%')[0]?.split('::') ?? [];
  const start = before === '' ? [] : before.split(':');
  const end = after === undefined || after === '' ? [] : after.split(':');
  // An IPv4 address at the end takes the place of two groups.
  const groups = end.length + (end.at(-1)?.includes('.') ? 1 : 0);
  const zeros = after === undefined ? 0 : Math.max(8 - start.length - groups, 0);
  const all = [...start, ...Array<string>(zeros).fill('0'), ...end];
  const network = all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/64`;
}

/** IPv4-mapped IPv6 becomes IPv4, and text that is not an address becomes ''. */
export function plainAddress(text: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ?? text;
  return isIP(mapped) === 0 ? '' : mapped;
}

function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](:\d+)?$/.exec(text)?.[1];
  return bracketed ?? (/^[^:]+:\d+$/.test(text) ? text.slice(0, text.indexOf(':')) : text);
}
