import { QueryCache, QueryClient } from '@tanstack/react-query';
import { createTRPCClient, httpBatchLink, httpSubscriptionLink, TRPCClientError } from '@trpc/client';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import type { AppRouter } from './contract.ts';
import { noteReached } from './reachability.ts';
import { signIn } from './session.ts';

/** Whether an error came from a procedure, and its code. Null: the server was not reached. */
export function errorCode(error: unknown): string | null {
  if (!(error instanceof TRPCClientError)) return null;
  const data: unknown = error.data;
  return typeof data === 'object' && data !== null && 'code' in data ? String(data.code) : null;
}

/** Whether no server has answered. */
export function isUnreached(error: unknown): boolean {
  return error instanceof TRPCClientError && errorCode(error) === null;
}

/** Whether somebody else has changed what was to be changed. */
export function isEditConflict(error: unknown): boolean {
  const data = error instanceof TRPCClientError ? (error.data as { kind?: string } | null | undefined) : null;
  return data?.kind === 'edit-conflict';
}

/** Where in a query an error is, in characters from 0. */
export function errorPlace(error: unknown): { readonly start: number; readonly end: number } | null {
  if (!(error instanceof TRPCClientError)) return null;
  const data = error.data as { place?: { start: number; end: number } | null } | null | undefined;
  return data?.place ?? null;
}

/** Refusals do not change by asking again. */
function mayRetry(failures: number, error: unknown): boolean {
  const code = errorCode(error);
  return failures < 3 && (code === null || code === 'INTERNAL_SERVER_ERROR' || code === 'SERVICE_UNAVAILABLE');
}

export const queryClient = new QueryClient({
  defaultOptions: {
    // Without a network, too: a call that fails is shown, one that is put off is not.
    queries: { retry: mayRetry, staleTime: 5_000, refetchOnWindowFocus: 'always', networkMode: 'always' },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({
    onSuccess: () => noteReached(true),
    onError: (error) => {
      noteReached(!isUnreached(error));
      if (errorCode(error) === 'UNAUTHORIZED') signIn();
    },
  }),
});

/** For calls that no cache may keep. */
export const apiClient = createTRPCClient<AppRouter>({
  links: [httpBatchLink({ url: '/trpc', maxURLLength: 4_000, maxItems: 20 })],
});

/** The procedures of the server as options of queries: `useQuery(trpc.me.get.queryOptions())`. */
export const trpc = createTRPCOptionsProxy<AppRouter>({ client: apiClient, queryClient });

/** For the one stream of this tab: the browser connects again by itself. */
export const liveClient = createTRPCClient<AppRouter>({ links: [httpSubscriptionLink({ url: '/trpc' })] });
