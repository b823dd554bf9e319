import { expect, test } from '@jest/globals';
import { CallerTurns } from './caller-turns.ts';

test('as many run at once as may, and those who have others under way come last', async () => {
  const turns = new CallerTurns(1);
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const run = (name: string, userId: string | null, tokenId = 'token') =>
    turns.run({ userId, tokenId }, async () => {
      order.push(name);
      if (name === 'first') await first.promise;
    });
  const all = [run('first', 'busy'), run('second', 'busy'), run('other', 'ada'), run('machine', null, 'ci')];
  expect(order).toEqual(['first']);
  first.resolve();
  await Promise.all(all);
  expect(order).toEqual(['first', 'other', 'machine', 'second']);
});

test('a work that fails leaves its place', async () => {
  const turns = new CallerTurns(1);
  const caller = { userId: 'ada', tokenId: 'token' };
  await expect(turns.run(caller, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await expect(turns.run(caller, async () => 'yes')).resolves.toBe('yes');
});
