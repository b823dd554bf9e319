import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { apiClient, queryClient } from './trpc.ts';
import { watchServer } from './watch-server.ts';

const answers = new Map<string, () => Promise<Response>>();
const json = async () => new Response('{}', { headers: { 'content-type': 'application/json' } });
const page = async () => new Response('<html>', { status: 403, headers: { 'content-type': 'text/html' } });
const asked = jest.fn((path: string) => (answers.get(path) as () => Promise<Response>)());
const reread = jest.spyOn(queryClient, 'refetchQueries');

beforeEach(() => {
  asked.mockClear();
  jest.useFakeTimers();
  Object.assign(globalThis, { document: { visibilityState: 'visible' }, fetch: asked });
});
afterEach(() => {
  jest.useRealTimers();
  Reflect.deleteProperty(globalThis, 'document');
});

test('a fault of a moment does not make the tab ask for more from then on', async () => {
  const faults = [() => Promise.reject(new TypeError('away')), async () => new Response('<html>', { status: 502 })];
  const end = watchServer();
  for (const fault of faults) {
    answers.set('/healthz', fault).set('/trpc/me.get', json);
    await jest.advanceTimersByTimeAsync(2_000);
    answers.set('/healthz', json);
    asked.mockClear();
    await jest.advanceTimersByTimeAsync(20_000);
    expect(new Set(asked.mock.calls.map(([path]) => path))).toEqual(new Set(['/healthz']));
  }
  expect(reread).toHaveBeenCalledTimes(0);
  end();
});

test('a proxy that keeps /healthz to itself is not taken for a server that is away', async () => {
  answers.set('/healthz', page).set('/trpc/me.get', json);
  const end = watchServer();
  await jest.advanceTimersByTimeAsync(20_000);
  expect(reread).toHaveBeenCalledTimes(0);
  expect(asked.mock.calls.filter(([path]) => path === '/healthz')).toHaveLength(1);
  answers.set('/trpc/me.get', () => Promise.reject(new TypeError('away')));
  await jest.advanceTimersByTimeAsync(10_000);
  expect(reread).toHaveBeenCalledTimes(0);
  answers.set('/trpc/me.get', json);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(reread).toHaveBeenCalledTimes(1);
  end();
});

test('what a change has done that a proxy gave up is read', async () => {
  const end = watchServer();
  answers.set('/healthz', json).set('/trpc/me.get', json);
  reread.mockClear();
  const gateway = async () => new Response('<html>', { status: 504, headers: { 'content-type': 'text/html' } });
  answers.set('/trpc/teams.create?batch=1', gateway);
  const mutationFn = () => apiClient.teams.create.mutate({ organization: 'acme', team: 'ops' } as never);
  const change = queryClient.getMutationCache().build(queryClient, { mutationFn });
  const failed = expect(change.execute(undefined)).rejects.toThrow(/status 504.*may be done/);
  await jest.advanceTimersByTimeAsync(100);
  await failed;
  expect(reread).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(3_000);
  expect(reread).toHaveBeenCalledTimes(1);
  await jest.advanceTimersByTimeAsync(20_000);
  expect(reread).toHaveBeenCalledTimes(1);
  end();
});
