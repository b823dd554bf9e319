import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Targets besides public addresses over HTTPS, as in HOLDFAST_OUTGOING_ALLOW. */
export interface AllowList {
  /** `address/bits`. */
  readonly networks: readonly (readonly [Address, number])[];
  /** Lower case. The names may resolve to any address. */
  readonly hosts: ReadonlySet<string>;
  /** `http://host:port`, which may be called without TLS at any address. */
  readonly plainOrigins: ReadonlySet<string>;
}

/** Other IPv6 addresses are private, local, translated from IPv4 by a private prefix, or unassigned. */
const globalUnicast = ipaddr.parseCIDR('2000::/3');
/** DNS64 puts this prefix before the address of a host with only IPv4 (RFC 6052). */
const translated = ipaddr.parseCIDR('64:ff9b::/96');
/** The Azure host agent, which responds to each of its machines, has a public address. */
const knownMetadata = ['168.63.129.16'];

/** `wrong` is the first invalid entry. */
export function parseAllowList(text: string | undefined): { readonly list: AllowList } | { readonly wrong: string } {
  const networks: (readonly [Address, number])[] = [];
  const hosts = new Set<string>();
  const plainOrigins = new Set<string>();
  for (const entry of (text ?? '').split(/[\s,]+/).filter(Boolean)) {
    if (/^http:\/\//i.test(entry)) {
      const url = URL.canParse(entry) ? new URL(entry) : null;
      if (url?.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '') return { wrong: entry };
      plainOrigins.add(url.origin);
    } else if (ipaddr.isValidCIDR(entry)) {
      networks.push(ipaddr.parseCIDR(entry));
    } else if (isAddress(entry)) {
      const address = ipaddr.parse(entry);
      networks.push([address, address.kind() === 'ipv6' ? 128 : 32]);
    } else if (/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(entry) && !/^[0-9.]+$/.test(entry)) {
      hosts.add(entry.toLowerCase());
    } else {
      return { wrong: entry };
    }
  }
  return { list: { networks, hosts, plainOrigins } };
}

/** The addresses are checked once they are known. */
export function isAllowedUrl(url: URL, { plainOrigins }: AllowList): boolean {
  if (url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && plainOrigins.has(url.origin));
}

export function isTrustedHost(url: URL, { hosts, plainOrigins }: AllowList): boolean {
  return hosts.has(url.hostname.toLowerCase()) || (url.protocol === 'http:' && plainOrigins.has(url.origin));
}

export function isAllowedAddress(text: string, list: AllowList): boolean {
  return isAddress(text) && isAllowed(ipaddr.parse(text), list);
}

function isAllowed(address: Address, list: AllowList): boolean {
  const { networks } = list;
  const isInside = (each: Address) =>
    networks.some(([network, bits]) => network.kind() === each.kind() && each.match(network, bits));
  if (isInside(address)) return true;
  if (address instanceof ipaddr.IPv6) {
    if (address.match(translated)) return isAllowed(new ipaddr.IPv4(address.toByteArray().slice(12)), list);
    // An IPv4-mapped address is never public: DNS never returns one by mistake.
    if (address.isIPv4MappedAddress()) return isInside(address.toIPv4Address());
    return address.range() === 'unicast' && address.match(globalUnicast);
  }
  return address.range() === 'unicast' && !knownMetadata.includes(address.toString());
}

function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || ipaddr.IPv6.isValid(text);
}
