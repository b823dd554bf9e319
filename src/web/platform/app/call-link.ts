import { httpBatchLink, type Operation, type TRPCLink } from '@trpc/client';
import type { AppRouter } from './procedure-types.ts';

type BatchOptions = Parameters<typeof httpBatchLink<AppRouter>>[0];

/** Proxies refuse longer URLs. */
const maxUrlLength = 4_000;
/** The rest of the URL is left for the path. */
const maxInputLength = 3_500;

/**
 * A group of queries that read a whole state shares a request. Other queries would have to wait for it, and the server could not stop when
 * nobody waits for the state any more. With a request each, the queries would wait for each other: the server reads only a few states at a
 * time for a user, and one for a request.
 */
const sharedReads = [
  ['stacks.get', 'stacks.pending'],
  ['resources.blame', 'resources.graph'],
] as const;
const loneReads = [
  'resources.get',
  'versions.diff',
  'versions.diffStacks',
  'versions.resources',
  'versions.text',
] as const;
export const stateReads: ReadonlySet<string> = new Set([...sharedReads.flat(), ...loneReads]);

/** Simultaneous calls share one request, except reads of states and calls whose input is too long for a URL. */
export function callLink(fetch: NonNullable<BatchOptions['fetch']>): TRPCLink<AppRouter> {
  const options = { url: '/trpc', fetch, maxURLLength: maxUrlLength };
  return (runtime) => {
    const together = httpBatchLink<AppRouter>({ ...options, maxItems: 20 })(runtime);
    const alone = httpBatchLink<AppRouter>({ ...options, maxItems: 1 })(runtime);
    const posted = httpBatchLink<AppRouter>({ ...options, maxItems: 1, methodOverride: 'POST' })(runtime);
    const shared = new Map<string, typeof together>();
    for (const paths of sharedReads) {
      const link = httpBatchLink<AppRouter>({ ...options, maxItems: 20 })(runtime);
      for (const path of paths) shared.set(path, link);
    }
    const linkOf = (path: string) => shared.get(path) ?? (stateReads.has(path) ? alone : together);
    return (call) => (isLong(call.op) ? posted : linkOf(call.op.path))(call);
  };
}

function isLong({ input, type }: Operation): boolean {
  return type === 'query' && encodeURIComponent(JSON.stringify(input) ?? '').length > maxInputLength;
}
