import { expect, test } from '@jest/globals';
import { QueryClient } from '@tanstack/react-query';
import { ofVersions } from './of-versions.ts';

test('what was read of a version is kept, but not for another one of the same number', async () => {
  const client = new QueryClient();
  let reads = 0;
  const read = (id: string) =>
    client.fetchQuery({ queryKey: ['versions', 1], queryFn: () => `${id}, ${++reads}`, ...ofVersions(id) });
  expect(await read('former')).toBe('former, 1');
  await client.invalidateQueries({ queryKey: ['versions'] });
  expect([await read('former'), await read('fresh'), await read('fresh')]).toEqual([
    'former, 1',
    'fresh, 2',
    'fresh, 2',
  ]);
});
