import { isIP, isIPv6 } from 'node:net';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Kubernetes names each service of a namespace in variables, e.g. HOLDFAST_API_SERVICE_HOST for `holdfast-api`. Only a complete set with
 * consistent values counts, because a single variable may be a misspelled setting.
 */
export function findServiceLinks(environment: Environment): string[] {
  const links = new Set<string>();
  for (const [name, host] of Object.entries(environment)) {
    const service = /^(HOLDFAST(?:_[A-Z0-9_]+)?)_SERVICE_HOST$/.exec(name)?.[1];
    if (service === undefined || host === undefined || isIP(host) === 0) continue;
    const port = environment[`${service}_SERVICE_PORT`];
    if (port === undefined || !isAddress(environment[`${service}_PORT`], host, port)) continue;
    for (const [each, value] of Object.entries(environment))
      if (value && each.startsWith(`${service}_`) && isLink(each.slice(service.length), value, host)) links.add(each);
  }
  return [...links].sort();
}

/** Whether the variable `<SERVICE><suffix>` is a link to `host`. */
function isLink(suffix: string, value: string, host: string): boolean {
  if (suffix === '_SERVICE_HOST') return value === host;
  if (/^_SERVICE_PORT(_[A-Z0-9_]+)?$/.test(suffix)) return /^\d{1,5}$/.test(value);
  if (suffix === '_PORT') return isAddress(value, host, null);
  const [, port, protocol, part] = /^_PORT_(\d{1,5})_(TCP|UDP|SCTP)(?:_(PROTO|PORT|ADDR))?$/.exec(suffix) ?? [];
  if (port === undefined || protocol === undefined) return false;
  if (part === undefined) return isAddress(value, host, port);
  return value === { PROTO: protocol.toLowerCase(), PORT: port, ADDR: host }[part];
}

/** Like `tcp://10.0.0.1:9090`. A null `port` matches any port. */
function isAddress(value: string | undefined, host: string, port: string | null): boolean {
  const [, address, given] = /^(?:tcp|udp|sctp):\/\/(.+):(\d{1,5})$/.exec(value ?? '') ?? [];
  return given !== undefined && address === (isIPv6(host) ? `[${host}]` : host) && (port ?? given) === given;
}
