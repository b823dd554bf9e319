import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { createTRPCClient, httpBatchLink, httpSubscriptionLink } from '@trpc/client';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { errorCode, isUnreached, mayRetry, repeatAfter, retryDelay } from './api-error.ts';
import type { AppRouter } from './contract.ts';
import { noteReached } from './reachability.ts';
import { noteSession, signIn } from './session.ts';

export const queryClient = new QueryClient({
  defaultOptions: {
    // Also without a network: a failed call shows an error, a paused call shows nothing.
    queries: {
      retry: mayRetry,
      retryDelay,
      refetchInterval: every(null),
      staleTime: 5_000,
      refetchOnWindowFocus: 'always',
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({ onSuccess, onError }),
  mutationCache: new MutationCache({ onSuccess, onError }),
});

/** When a query is read again: after `ms`, or after a temporary failure when a retry is allowed. Null: only then. */
export function every(ms: number | null) {
  return ({ state }: { readonly state: { readonly error: unknown } }): number | false =>
    repeatAfter(state.error) || (ms ?? false);
}

function onSuccess(): void {
  noteReached(true);
  noteSession();
}

function onError(error: unknown): void {
  noteReached(!isUnreached(error));
  if (errorCode(error) === 'UNAUTHORIZED') signIn();
}

/** For calls whose results must not be cached. */
export const apiClient = createTRPCClient<AppRouter>({
  links: [httpBatchLink({ url: '/trpc', maxURLLength: 4_000, maxItems: 20 })],
});

/** The procedures of the server as options of queries: `useQuery(trpc.me.get.queryOptions())`. */
export const trpc = createTRPCOptionsProxy<AppRouter>({ client: apiClient, queryClient });

/** For the one stream of this tab: the browser connects again by itself. */
export const liveClient = createTRPCClient<AppRouter>({ links: [httpSubscriptionLink({ url: '/trpc' })] });
