import { expect, test } from '@jest/globals';
import { createTRPCClient } from '@trpc/client';
import { callLink } from './call-link.ts';
import type { AppRouter } from './procedure-types.ts';

const stack = { organization: 'acme', project: 'web', stack: 'prod' };

function recording() {
  const sent: { readonly method: string; readonly names: string; readonly body: unknown; readonly signal: unknown }[] =
    [];
  const fetch = async (url: RequestInfo | URL, init: object = {}): Promise<Response> => {
    const { body, method = '', signal } = init as RequestInit;
    const { length, pathname } = { pathname: String(url).split('?')[0] ?? '', length: String(url).length };
    expect(length).toBeLessThanOrEqual(4_000);
    const names = pathname.replace('/trpc/', '');
    sent.push({ method, names, body, signal });
    return Response.json(names.split(',').map(() => ({ result: { data: null } })));
  };
  return { client: createTRPCClient<AppRouter>({ links: [callLink(fetch)] }), sent };
}

test.each(['x'.repeat(5_000), 'ж'.repeat(600)])(
  'a query whose input is too long for a URL is sent all the same',
  async (text) => {
    const { client, sent } = recording();
    await Promise.all([client.stacks.list.query({ organization: 'acme', text }), client.me.get.query()]);
    expect(sent.map(({ method, names }) => [method, names]).sort()).toEqual([
      ['GET', 'me.get'],
      ['POST', 'stacks.list'],
    ]);
    const { body } = sent.find(({ method }) => method === 'POST') ?? {};
    expect(JSON.parse(String(body))).toEqual({ 0: { organization: 'acme', text } });
  },
);

test('no answer waits for a call that reads a whole state, which ends as soon as nobody waits for it', async () => {
  const { client, sent } = recording();
  const left = new AbortController();
  const read = client.resources.get.query({ ...stack, urn: 'u' }, { signal: left.signal });
  await Promise.all([read, client.me.get.query(), client.resources.history.query({ ...stack, urn: 'u' })]);
  expect(sent.map(({ names }) => names).sort()).toEqual(['me.get,resources.history', 'resources.get']);
  left.abort();
  expect(sent.map(({ signal }) => (signal as AbortSignal).aborted)).toEqual(
    sent.map(({ names }) => names === 'resources.get'),
  );
});

test('calls of one moment that read a whole state are few requests, because few of them are read at a time', async () => {
  const { client, sent } = recording();
  const { resources, stacks } = client;
  const named = { ...stack, urn: 'u' };
  const pages = [stacks.get.query(stack), stacks.pending.query(stack), resources.graph.query(stack)];
  await Promise.all([...pages, resources.get.query(named), resources.blame.query(named), client.me.get.query()]);
  expect(sent.map(({ names }) => names).sort()).toEqual(
    ['me.get', 'resources.get', 'resources.graph,resources.blame', 'stacks.get,stacks.pending'].sort(),
  );
});
