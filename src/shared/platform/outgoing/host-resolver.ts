import dns from 'node:dns';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Returns all addresses of a host. `isTrusted`: an operator has named it. */
export type ResolveHost = (
  hostname: string,
  options: { readonly isTrusted: boolean; readonly signal: AbortSignal },
) => Promise<readonly ResolvedAddress[]>;

/** Both ways to resolve a name. */
export interface Resolvers {
  /** Asks the name servers, on a socket. */
  readonly query: (hostname: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;
  /** As the system does, by its hosts file too: occupies a thread of the process until it is done. */
  readonly lookup: (hostname: string) => Promise<readonly ResolvedAddress[]>;
}

/** The name servers know no such name, or there are none. */
const unknownCodes: readonly unknown[] = [dns.NOTFOUND, dns.NODATA, dns.CONNREFUSED];

/**
 * Resolves names so that slow name servers of users delay no others. Two threads of a process look up names for all of its connections, those to
 * Postgres, Redis and the blob store included, so only names that an operator has named, and names that name servers do not know, are looked up
 * by the system: one at a time, and never after their call has ended.
 */
export function createHostResolver(
  { query, lookup }: Resolvers = { query: queryServers, lookup: lookUp },
): ResolveHost {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = (hostname: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> => {
    const found = last.then(() => {
      signal.throwIfAborted();
      return lookup(hostname);
    });
    last = found.catch(() => null);
    return found;
  };
  return async (hostname, { isTrusted, signal }) => {
    if (isTrusted) return inTurn(hostname, signal);
    try {
      return await query(hostname, signal);
    } catch (error) {
      if (!isUnknown(error as Error)) throw error;
      return inTurn(hostname, signal);
    }
  };
}

const queryTimeoutMs = 2_500;
const queryTries = 2;

async function queryServers(hostname: string, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
  signal.throwIfAborted();
  const resolver = new dns.promises.Resolver({ timeout: queryTimeoutMs, tries: queryTries });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const found = answers.flatMap((answer, index) =>
      answer.status === 'fulfilled' ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 })) : [],
    );
    const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as Error] : []));
    // A failure other than a missing kind of address says more.
    failures.sort((a, b) => Number(isUnknown(a)) - Number(isUnknown(b)));
    if (found.length === 0 && failures[0]) throw failures[0];
    return found;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

function isUnknown(error: NodeJS.ErrnoException): boolean {
  return unknownCodes.includes(error.code);
}

function lookUp(hostname: string): Promise<readonly ResolvedAddress[]> {
  return dns.promises.lookup(hostname, { all: true });
}
