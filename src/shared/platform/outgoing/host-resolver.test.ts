import dns from 'node:dns';
import { expect, jest, test } from '@jest/globals';
import { bothKinds, createHostResolver, listedIn, type ResolvedAddress } from './host-resolver.ts';

const found: readonly ResolvedAddress[] = [{ address: '192.0.2.1', family: 4 }];
const unknown = Object.assign(new Error('no such name'), { code: dns.NOTFOUND });
const refused = Object.assign(new Error('no name server'), { code: dns.CONNREFUSED });
const listed = async () => [];
const never = new Promise<never>(() => {});
const signal = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

test.each(['trusted names', 'names that name servers do not know'])(
  'at most one lookup of the system runs at once, and none after its call has ended: %s',
  async (kind) => {
    const isTrusted = kind === 'trusted names';
    const { promise: first, reject } = Promise.withResolvers<never>();
    const lookup = jest.fn(async (hostname: string) => (hostname === '0' ? first : found));
    const resolve = createHostResolver({ listed, query: async () => Promise.reject(unknown), lookup });
    const calls = new AbortController();
    const all = Array.from({ length: 50 }, (_, index) =>
      resolve(String(index), { isTrusted, signal: calls.signal }).catch((error: Error) => error.name),
    );
    const later = resolve('later', { isTrusted, signal });
    await turn();
    expect(lookup.mock.calls).toEqual([['0']]);
    calls.abort();
    reject(new Error('the name server did not answer'));
    expect(await later).toBe(found);
    expect(await Promise.all(all)).toEqual(['Error', ...Array.from({ length: 49 }, () => 'AbortError')]);
    expect(lookup.mock.calls).toEqual([['0'], ['later']]);
  },
);

test('names of users wait for no other name, and are looked up by the system only if name servers do not know them', async () => {
  const query = jest.fn(async (hostname: string) => {
    if (hostname === 'slow') return never;
    if (hostname === 'failing') throw Object.assign(new Error('failed'), { code: dns.SERVFAIL });
    if (hostname === 'local') throw unknown;
    return found;
  });
  const lookup = jest.fn(async () => found);
  const resolve = createHostResolver({ listed, query, lookup });
  const options = { isTrusted: false, signal };
  for (let count = 0; count < 50; count++) void resolve('slow', options);
  expect(await resolve('public', options)).toBe(found);
  await expect(resolve('failing', options)).rejects.toThrow('failed');
  expect(lookup).not.toHaveBeenCalled();
  expect(await resolve('local', options)).toBe(found);
  expect(lookup.mock.calls).toEqual([['local']]);
  query.mockClear();
  await resolve('public', { isTrusted: true, signal });
  expect(query).not.toHaveBeenCalled();
});

test('trusted names wait for no other, and names that only an owner of a domain knows are not looked up by the system', async () => {
  const query = jest.fn(async (hostname: string) => Promise.reject(hostname.startsWith('offline') ? refused : unknown));
  const lookup = jest.fn(async (hostname: string) => (hostname.startsWith('slow') ? never : found));
  const resolve = createHostResolver({ listed, query, lookup });
  const untrusted = { isTrusted: false, signal };
  await expect(resolve('slow.example.com', untrusted)).rejects.toBe(unknown);
  expect(lookup).not.toHaveBeenCalled();
  expect(await resolve('offline.example.com', untrusted)).toBe(found);
  void resolve('slow', untrusted);
  void resolve('slower', untrusted);
  await turn();
  expect(await resolve('ci.internal', { isTrusted: true, signal })).toBe(found);
  expect(lookup.mock.calls).toEqual([['offline.example.com'], ['slow'], ['ci.internal']]);
});

test('names in the hosts file need no name server', async () => {
  const query = jest.fn(async () => Promise.reject(unknown));
  const lookup = jest.fn(async () => never);
  const resolve = createHostResolver({
    listed: async (hostname) => (hostname === 'ci.internal' ? found : []),
    query,
    lookup,
  });
  expect(await resolve('ci.internal', { isTrusted: false, signal })).toBe(found);
  expect(query).not.toHaveBeenCalled();
  expect(lookup).not.toHaveBeenCalled();
});

test('a hosts file is read as the system reads it', () => {
  const text = `
# 192.0.2.9 ci.internal
127.0.0.1\tlocalhost
10.0.0.1  git.internal CI.internal # a comment ci.other
2001:db8::1 ci.internal
fe80::1%eth0 ci.internal
none ci.internal`;
  expect(listedIn(text, 'ci.internal')).toEqual([
    { address: '10.0.0.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ]);
  for (const name of ['ci.other', 'internal', '#', '10.0.0.1']) expect(listedIn(text, name)).toEqual([]);
});

test('addresses of one kind wait a second for the other', async () => {
  jest.useFakeTimers();
  try {
    const answer = bothKinds(Promise.resolve(['192.0.2.1']), never);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await answer).toEqual(found);
    const late = bothKinds(never, new Promise((resolve) => setTimeout(resolve, 5_000, ['2001:db8::1'])));
    await jest.advanceTimersByTimeAsync(6_000);
    expect(await late).toEqual([{ address: '2001:db8::1', family: 6 }]);
  } finally {
    jest.useRealTimers();
  }
});

test('without addresses of one kind, the other is waited for', async () => {
  const both = [...found, { address: '2001:db8::1', family: 6 }];
  expect(await bothKinds(Promise.resolve(['192.0.2.1']), Promise.resolve(['2001:db8::1']))).toEqual(both);
  for (const none of [Promise.reject(unknown), Promise.resolve([])]) {
    jest.useFakeTimers();
    const answer = bothKinds(none, new Promise((resolve) => setTimeout(resolve, 5_000, ['2001:db8::1'])));
    await jest.advanceTimersByTimeAsync(5_000);
    jest.useRealTimers();
    expect(await answer).toEqual(both.slice(1));
  }
  await expect(bothKinds(Promise.reject(unknown), Promise.reject(refused))).rejects.toBe(unknown);
  await expect(bothKinds(Promise.reject(unknown), Promise.reject(new Error('failed')))).rejects.toThrow('failed');
});
