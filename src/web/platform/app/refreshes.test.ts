import { expect, test } from '@jest/globals';
import { QueryObserver } from '@tanstack/react-query';
import { thenRefresh } from './then-refresh.ts';
import { every, queryClient } from './trpc.ts';

const listOf = (pages: number) => ({ pages: Array.from({ length: pages }, () => ({ items: [] })), pageParams: [] });

test('a list is read page by page: the more pages are loaded, the more rarely', () => {
  const pause = (data: unknown) => every(2_000)({ state: { data, error: null } });
  expect([undefined, null, 'text', { pages: 7 }].map(pause)).toEqual([2_000, 2_000, 2_000, 2_000]);
  expect([0, 1, 2, 500].map(listOf).map(pause)).toEqual([2_000, 2_000, 4_000, 1_000_000]);
  expect(every(null)({ state: { data: listOf(9), error: null } })).toBe(false);
});

test('a page reads what it shows when somebody comes back to it, but no long list', () => {
  const onFocus = queryClient.getDefaultOptions().queries?.refetchOnWindowFocus as (query: object) => unknown;
  expect([1, 5, 6].map((pages) => onFocus({ state: { data: listOf(pages) } }))).toEqual(['always', 'always', false]);
});

test('a dialog closes without waiting for long lists', async () => {
  const { promise: never } = Promise.withResolvers<object>();
  const reads = { short: 0, long: 0 };
  const watch = (name: keyof typeof reads, data: object, read: () => object | Promise<object>) => {
    queryClient.setQueryData([name], data);
    const queryFn = () => {
      reads[name] += 1;
      return read();
    };
    return new QueryObserver(queryClient, { queryKey: [name], queryFn, staleTime: 60_000 }).subscribe(() => {});
  };
  const ends = [watch('short', listOf(1), () => listOf(1)), watch('long', listOf(9), () => never)];
  let isDone = false;
  await thenRefresh(() => {
    isDone = true;
  }).onSuccess();
  expect({ isDone, ...reads }).toEqual({ isDone: true, short: 1, long: 1 });
  for (const end of ends) end();
  queryClient.clear();
});
