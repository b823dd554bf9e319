import dns from 'node:dns';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** `isTrusted` means that an operator has named the host. */
export type ResolveHost = (
  hostname: string,
  options: { readonly isTrusted: boolean; readonly signal: AbortSignal },
) => Promise<readonly ResolvedAddress[]>;

export interface Resolvers {
  /** Reads the hosts file. */
  readonly listed: (hostname: string) => Promise<readonly ResolvedAddress[]>;
  /** Queries the name servers, on a socket. */
  readonly query: (hostname: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;
  /** Includes the search domains of the system. Occupies a thread of the process until the end. */
  readonly lookup: (hostname: string) => Promise<readonly ResolvedAddress[]>;
}

/** The name servers do not know the name, or there are none. */
const unknownCodes: readonly unknown[] = [dns.NOTFOUND, dns.NODATA, dns.CONNREFUSED];

/**
 * Slow name servers of users must delay nothing else. Only two threads of a process look up names, for all its connections, including those
 * to Postgres, Redis and the blob store. Therefore the system looks up names that an operator has named, and, separately, only names for
 * which it queries no server of a user: names without a dot that name servers do not know, and any name if there are no name servers. It
 * looks up one name of each kind at a time, and never after its call has ended.
 */
export function createHostResolver(
  { listed, query, lookup }: Resolvers = { listed: readHosts, query: queryServers, lookup: lookUp },
): ResolveHost {
  const lookUpTrusted = inTurns(lookup);
  const lookUpOther = inTurns(lookup);
  return async (hostname, { isTrusted, signal }) => {
    if (isTrusted) return lookUpTrusted(hostname, signal);
    const found = await listed(hostname);
    if (found.length > 0) return found;
    try {
      return await query(hostname, signal);
    } catch (error) {
      if (!isUnknown(error as Error) || (hostname.includes('.') && !isWithoutServers(error as Error))) throw error;
      return lookUpOther(hostname, signal);
    }
  };
}

function inTurns(lookup: Resolvers['lookup']): Resolvers['query'] {
  let last: Promise<unknown> = Promise.resolve();
  return (hostname, signal) => {
    const found = last.then(() => {
      signal.throwIfAborted();
      return lookup(hostname);
    });
    last = found.catch(() => null);
    return found;
  };
}

/** Takes the text of a hosts file. */
export function listedIn(text: string, hostname: string): readonly ResolvedAddress[] {
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    // The rules do not support addresses of a single interface (fe80::1%eth0).
    const family = address.includes('%') ? 0 : isIP(address);
    return family > 0 && names.includes(hostname) ? [{ address, family }] : [];
  });
}

/** Read for each call: the file is short, and an orchestrator may change it. */
async function readHosts(hostname: string): Promise<readonly ResolvedAddress[]> {
  return listedIn(await readFile('/etc/hosts', 'utf8').catch(() => ''), hostname);
}

const queryTimeoutMs = 2_500;
const queryTries = 2;
/** Addresses of one family wait this long for the other: some name servers never answer queries for IPv6. */
const otherKindMs = 1_000;

async function queryServers(hostname: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
  signal.throwIfAborted();
  const resolver = new dns.promises.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await bothKinds(resolver.resolve4(hostname), resolver.resolve6(hostname));
  } finally {
    signal.removeEventListener('abort', cancel);
    // Cancels a query that is no longer needed.
    cancel();
  }
}

/** Returns both families, or the one that was found first. */
export async function bothKinds(
  v4: Promise<readonly string[]>,
  v6: Promise<readonly string[]>,
): Promise<readonly ResolvedAddress[]> {
  const found: ResolvedAddress[] = [];
  const one = Promise.withResolvers<void>();
  const add = async (addresses: Promise<readonly string[]>, family: number): Promise<void> => {
    for (const address of await addresses) found.push({ address, family });
    if (found.length > 0) one.resolve();
  };
  const answers = Promise.allSettled([add(v4, 4), add(v6, 6)]);
  let timer: NodeJS.Timeout | undefined;
  const late = one.promise.then(
    () =>
      new Promise<null>((resolve) => {
        timer = setTimeout(resolve, otherKindMs, null);
      }),
  );
  const settled = await Promise.race([answers, late]);
  clearTimeout(timer);
  if (found.length > 0) return found.toSorted((a, b) => a.family - b.family);
  const failures = settled?.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as Error] : [])) ?? [];
  // A failure other than a missing address family is more informative.
  failures.sort((a, b) => Number(isUnknown(a)) - Number(isUnknown(b)));
  if (failures[0]) throw failures[0];
  return found;
}

function isUnknown(error: NodeJS.ErrnoException): boolean {
  return unknownCodes.includes(error.code);
}

function isWithoutServers(error: NodeJS.ErrnoException): boolean {
  return error.code === dns.CONNREFUSED;
}

function lookUp(hostname: string): Promise<readonly ResolvedAddress[]> {
  return dns.promises.lookup(hostname, { all: true });
}
