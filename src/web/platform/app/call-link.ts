import { httpBatchLink, type Operation, type TRPCLink } from '@trpc/client';
import type { AppRouter } from './contract.ts';

type BatchOptions = Parameters<typeof httpBatchLink<AppRouter>>[0];

/** Proxies refuse longer URLs. */
const maxUrlLength = 4_000;
/** The rest of the URL is for the path. */
const maxInputLength = 3_500;

/**
 * Queries that read a whole state. Each is a request of its own: in a batch, the other answers would wait for it, and the server would not
 * stop when nobody waits for it any more. Queries of one part of a page come and go together, and share a request: the server reads few
 * states at a time for a user.
 */
const ofPage = ['stacks.get', 'stacks.pending'];
const ofGraph = ['resources.blame', 'resources.graph'];
const ofNone = ['resources.get', 'versions.diff', 'versions.diffStacks', 'versions.resources', 'versions.text'];
export const stateReads: ReadonlySet<string> = new Set([...ofPage, ...ofGraph, ...ofNone]);

/** Sends calls of the same moment as one request, except slow ones, and those whose input is too long for a URL. */
export function callLink(fetch: NonNullable<BatchOptions['fetch']>): TRPCLink<AppRouter> {
  const options = { url: '/trpc', fetch, maxURLLength: maxUrlLength };
  return (runtime) => {
    const together = httpBatchLink<AppRouter>({ ...options, maxItems: 20 })(runtime);
    const alone = httpBatchLink<AppRouter>({ ...options, maxItems: 1 })(runtime);
    const posted = httpBatchLink<AppRouter>({ ...options, maxItems: 1, methodOverride: 'POST' })(runtime);
    return (call) => (isLong(call.op) ? posted : stateReads.has(call.op.path) ? alone : together)(call);
  };
}

function isLong({ input, type }: Operation): boolean {
  return type === 'query' && encodeURIComponent(JSON.stringify(input) ?? '').length > maxInputLength;
}
