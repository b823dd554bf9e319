import { createTRPCClient, httpLink } from '@trpc/client';
import type { AppRouter } from '../../src/api/router.ts';

export function callsWith(url: string, token: string) {
  return createTRPCClient<AppRouter>({
    links: [httpLink({ url: `${url}/trpc`, headers: { authorization: `token ${token}` } })],
  });
}
export type Calls = ReturnType<typeof callsWith>;
