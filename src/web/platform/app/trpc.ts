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

export const queryClient = new QueryClient({
  defaultOptions: {
    // Also without a network: a failed call shows an error, a paused call shows nothing.
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

/**
 * When a query is read again: after `ms` for each page of a list, or after a temporary failure when a retry is allowed. Null: only
 * then.
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

/** A proxy that gave up does not stop the server: what is shown is read again as soon as it answers. */
function onChangeError(error: Error): void {
  onError(error);
  if (proxyAnswer(error) === null) return;
  error.message += proxyTexts.mayBeDone;
  noteAway();
}

/** For calls whose results must not be cached. */
export const apiClient = createTRPCClient<AppRouter>({ links: [callLink(noticingFetch)] });

/** The first call that nothing answers says so on the page; its retries take longer. A proxy that answers in place of the server is named. */
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

/** A proxy answers for a server that is away, with a page. */
function isJson(answer: Response): boolean {
  return (answer.headers.get('content-type') ?? '').includes('json');
}

const probeMs = 2_000;
/** Asks so often whether the server answers, with the cheapest call: most pages ask for their data much more rarely. */
const beatMs = 2_000;
const probePath = '/trpc/me.get';
let beatPath = '/healthz';
/** A busy server is not away. */
const patienceMs = 10_000;
/** A stream may be cut every few seconds, such as by a proxy: what is shown is not read again each time. */
const rereadMs = 30_000;
let rereadAt = Number.NEGATIVE_INFINITY;
let isAway = false;
let probe: ReturnType<typeof setTimeout> | undefined;

/** The server does not answer: the page says so, and goes on as soon as it answers again. */
function noteAway(): void {
  isAway = true;
  noteReached(false);
  clearTimeout(probe);
  probe = setTimeout(() => void checkReached(), probeMs);
}

/** Watches whether the server answers, as long as somebody looks at the page. Returns a function that ends it. */
export function watchServer(): () => void {
  let isAsking = false;
  const beat = async (): Promise<void> => {
    if (document.visibilityState !== 'visible' || isAsking || probe !== undefined) return;
    isAsking = true;
    const answer = await ask(beatPath).catch(() => null);
    if (answer === null || !isJson(answer)) {
      if (beatPath === probePath || !(await isThere(probePath))) noteAway();
      // A proxy may answer or refuse the one path itself. A fault, such as of a replica that restarts, passes.
      else if (answer !== null && answer.status < 500) beatPath = probePath;
    }
    isAsking = false;
  };
  const timer = setInterval(() => void beat(), beatMs);
  return () => clearInterval(timer);
}

function isThere(path: string): Promise<boolean> {
  return ask(path).then(isJson, () => false);
}

function ask(path: string): Promise<Response> {
  return fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(patienceMs) });
}

/** Asks whether the server answers. Called when the stream of notifications is cut, which may have other reasons. */
export async function checkReached(): Promise<void> {
  clearTimeout(probe);
  probe = undefined;
  try {
    const answer = await ask(probePath);
    if (!isJson(answer)) return noteAway();
    noteReached(true);
    if (!answer.ok || (!isAway && performance.now() < rereadAt + rereadMs)) return;
    isAway = false;
    rereadAt = performance.now();
    await queryClient.refetchQueries({ type: 'active' });
  } catch {
    noteAway();
  }
}

/** An option of queries that read a whole state: the server stops when nobody waits for the answer any more. */
export const stopsUnread = { trpc: { abortOnUnmount: true } } as const;

/** The procedures of the server as options of queries: `useQuery(trpc.me.get.queryOptions())`. */
export const trpc = createTRPCOptionsProxy<AppRouter>({ client: apiClient, queryClient });

/** For the one stream of this tab: the browser connects again by itself. */
export const liveClient = createTRPCClient<AppRouter>({ links: [httpSubscriptionLink({ url: '/trpc' })] });
