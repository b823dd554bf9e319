import { createTRPCClient, httpLink } from '@trpc/client';
import type { AppRouter } from '../../src/api/router.ts';

/** Calls the procedures of the web UI with a token. */
export function callsWith(url: string, token: string) {
  return createTRPCClient<AppRouter>({
    links: [httpLink({ url: `${url}/trpc`, headers: { authorization: `token ${token}` } })],
  });
}
export type Calls = ReturnType<typeof callsWith>;
