import { expect, jest, test } from '@jest/globals';
import { InfiniteQueryObserver, QueryClient, QueryObserver } from '@tanstack/react-query';
import { reread } from './reread.ts';

test('many changes do not keep an answer from the page, and the last one is read', async () => {
  const client = new QueryClient();
  const asked: PromiseWithResolvers<number>[] = [];
  const queryFn = (): Promise<number> => {
    const answer = Promise.withResolvers<number>();
    asked.push(answer);
    return answer.promise;
  };
  const shown: unknown[] = [];
  const observer = new QueryObserver(client, { queryKey: ['resources', 'get'], queryFn });
  const end = observer.subscribe(({ data }) => {
    if (data !== shown.at(-1)) shown.push(data);
  });
  const answer = async (at: number): Promise<void> => {
    asked[at]?.resolve(at);
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  };
  await answer(0);
  const rereads = [1, 2, 3, 4, 5].map(() => reread(client, ['resources']));
  expect(asked).toHaveLength(2);
  await answer(1);
  expect(asked).toHaveLength(3);
  await answer(2);
  await Promise.all(rereads);
  expect(asked).toHaveLength(3);
  expect(shown).toEqual([undefined, 0, 1, 2].slice(shown[0] === undefined ? 0 : 1));

  // One that was in progress before the change may not have seen it.
  void client.refetchQueries({ queryKey: ['resources'] });
  const late = reread(client, ['resources']);
  await answer(3);
  expect(asked).toHaveLength(5);
  await answer(4);
  await late;
  end();
  client.clear();
});

test('a long list is read once for the changes of a while', async () => {
  jest.useFakeTimers();
  const client = new QueryClient();
  let reads = 0;
  const pages = 20;
  const observer = new InfiniteQueryObserver(client, {
    queryKey: ['resources', 'list'],
    queryFn: ({ pageParam }: { pageParam: number }) => {
      reads += 1;
      return Promise.resolve(pageParam);
    },
    initialPageParam: 0,
    getNextPageParam: (page: number) => (page + 1 < pages ? page + 1 : undefined),
  });
  const end = observer.subscribe(() => {});
  await jest.advanceTimersByTimeAsync(1_000);
  // A short list is read at once.
  await reread(client, ['resources']);
  expect(reads).toBe(2);
  for (let page = 1; page < pages; page++) await observer.fetchNextPage();
  reads = 0;
  for (let change = 0; change < 30; change++) {
    await reread(client, ['resources']);
    await jest.advanceTimersByTimeAsync(100);
  }
  expect(reads).toBe(0);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(reads).toBe(pages);
  await reread(client, ['resources']);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(reads).toBe(2 * pages);
  end();
  client.clear();
  jest.useRealTimers();
});
