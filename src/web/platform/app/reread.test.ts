import { expect, test } from '@jest/globals';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
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
