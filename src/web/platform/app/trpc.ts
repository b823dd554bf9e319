import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { createTRPCClient, httpSubscriptionLink } from '@trpc/client';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import { proxyTexts } from '../texts.tsx';
import {
  errorCode,
  isUnreached,
  mayRetry,
  ProxyAnswerError,
  proxyAnswer,
  repeatAfter,
  retryDelay,
} from './api-error.ts';
import { callLink } from './call-link.ts';
import type { AppRouter } from './procedure-types.ts';
import { noteReached } from './reachability.ts';
import { isLong, loadedPages } from './refreshes.ts';
import { signIn } from './session.ts';
import { isJson, noteAway, rereadBy } from './watch-server.ts';

export const queryClient = new QueryClient({
  defaultOptions: {
    // `networkMode`: calls are sent even without a network, because a failed call shows an error, but a paused call shows nothing.
    queries: {
      retry: mayRetry,
      retryDelay,
      refetchInterval: every(null),
      staleTime: 5_000,
      refetchOnWindowFocus: (query) => (isLong(query) ? false : 'always'),
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
  queryCache: new QueryCache({ onSuccess, onError }),
  mutationCache: new MutationCache({ onSuccess, onError: onChangeError }),
});

rereadBy(() => queryClient.refetchQueries({ type: 'active' }));

/**
 * When a query is reloaded: after `ms` for each page of a list, or after a temporary failure if a retry is allowed. Null: only after a
 * failure.
 */
export function every(ms: number | null) {
  return ({ state }: { readonly state: { readonly data?: unknown; readonly error: unknown } }): number | false =>
    repeatAfter(state.error) || (ms === null ? false : ms * loadedPages(state.data));
}

function onSuccess(): void {
  noteReached(true);
}

function onError(error: unknown): void {
  noteReached(!isUnreached(error));
  if (errorCode(error) === 'UNAUTHORIZED') signIn();
}

/** A proxy that gave up does not stop the server: shown data is reloaded as soon as the server answers. */
function onChangeError(error: Error): void {
  onError(error);
  if (proxyAnswer(error) === null) return;
  error.message += proxyTexts.mayBeDone;
  noteAway();
}

/** For calls whose results must not be cached. */
export const apiClient = createTRPCClient<AppRouter>({ links: [callLink(noticingFetch)] });

/**
 * The first call without an answer is reported on the page at once, because its retries take longer. A proxy that answers in place of the
 * server is named.
 */
async function noticingFetch(input: RequestInfo | URL, init?: object): Promise<Response> {
  const options = init as RequestInit | undefined;
  let answer: Response;
  try {
    answer = await fetch(input, options);
  } catch (error) {
    if (options?.signal?.aborted !== true) noteAway();
    throw error;
  }
  if (!isJson(answer)) throw new ProxyAnswerError(answer.status);
  return answer;
}

/** An option of queries that read a whole state: the server stops when nobody waits for the answer any more. */
export const stopsUnread = { trpc: { abortOnUnmount: true } } as const;

/** As in `useQuery(trpc.me.get.queryOptions())`. */
export const trpc = createTRPCOptionsProxy<AppRouter>({ client: apiClient, queryClient });

/** For the one stream of this tab: the browser reconnects by itself. */
export const liveClient = createTRPCClient<AppRouter>({ links: [httpSubscriptionLink({ url: '/trpc' })] });
