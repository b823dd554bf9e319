import { afterEach, expect, test } from '@jest/globals';
import { FairSemaphore, type SemaphoreLimits } from './fair-semaphore.ts';

let over = new AbortController();
afterEach(() => {
  // Calls that still wait.
  over.abort();
  over = new AbortController();
});

function noted(limits: SemaphoreLimits) {
  const semaphore = new FairSemaphore(limits);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = async (name: string, of: string | null, signal = over.signal): Promise<void> => {
    // A user, or organization/user.
    const [userId = null, organization] = of?.split('/').reverse() ?? [];
    const end = await semaphore.take({ userId, tokenId: 'ci', organization }, signal);
    begun.push(name);
    ends.set(name, end);
  };
  const ask = (name: string, userId: string | null, signal?: AbortSignal): void =>
    void take(name, userId, signal).catch(() => {});
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { semaphore, begun, take, ask, end };
}

test('no caller waits for all earlier calls of another caller', async () => {
  const { ask, begun, end } = noted({ atOnce: 1 });
  ask('first', 'busy');
  ask('second', 'busy');
  ask('third', 'busy');
  ask('other', 'ada');
  ask('machine', null);
  await new Promise(setImmediate);
  for (const name of ['first', 'other', 'machine', 'second', 'third']) {
    expect(begun.at(-1)).toBe(name);
    await end(name);
  }
});

test('a caller does not get all slots', async () => {
  const { ask, begun, end } = noted({ atOnce: 3, atOncePerCaller: 2 });
  for (const name of ['a', 'b', 'c']) ask(name, 'busy');
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'b']);
  ask('other', 'ada');
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'b', 'other']);
  await end('other');
  expect(begun).toHaveLength(3);
  await end('a');
  expect(begun).toEqual(['a', 'b', 'other', 'c']);
});

test('a long queue is refused at once: with 429 for one caller, with 503 in total', async () => {
  const { ask, take, semaphore } = noted({ atOnce: 1, waiting: 3, waitingPerCaller: 2 });
  for (const name of ['a', 'b', 'c']) ask(name, 'busy');
  await expect(take('d', 'busy')).rejects.toMatchObject({ status: 429, code: 'own-queue', retryAfterSeconds: 5 });
  ask('e', 'ada');
  await expect(take('f', 'ada')).rejects.toMatchObject({ status: 503, retryAfterSeconds: 5 });
  expect([semaphore.running, semaphore.waiting]).toEqual([1, 3]);
});

test('an organization does not get the queue, nor its order, however many tokens it has', async () => {
  const { begun, ask, end, take, semaphore } = noted({ atOnce: 1, waiting: 4, waitingPerCaller: 2 });
  ask('a', 'acme/1');
  const dropped = take('e', 'acme/5');
  for (const name of ['b', 'c', 'd']) ask(name, `acme/${name}`);
  void dropped.catch(() => {});
  // The newest of acme has to go for each one of others.
  ask('globex', 'globex/ada');
  ask('initech', 'initech/bob');
  await new Promise(setImmediate);
  expect([semaphore.running, semaphore.waiting]).toEqual([1, 4]);
  await expect(take('f', 'acme/6')).rejects.toMatchObject({ status: 503 });
  for (const name of ['a', 'globex', 'initech', 'e', 'b']) {
    expect(begun.at(-1)).toBe(name);
    await end(name);
  }
  expect([semaphore.running, semaphore.waiting]).toEqual([0, 0]);
});

test('a user does not get the queue, nor its order, in any number of organizations', async () => {
  const { begun, ask, end, take } = noted({ atOnce: 1, waiting: 4 });
  for (const name of ['a', 'b', 'c', 'd']) ask(name, `org-${name}/eve`);
  const last = take('e', 'org-e/eve');
  ask('other', 'globex/ada');
  await expect(last).rejects.toMatchObject({ status: 503 });
  for (const name of ['a', 'other', 'b', 'c', 'd']) {
    expect(begun.at(-1)).toBe(name);
    await end(name);
  }
});

test('an organization does not get all slots if others are kept for the rest', async () => {
  const { begun, ask } = noted({ atOnce: 2, atOncePerOrganization: 1 });
  ask('a', 'acme/1');
  ask('b', 'acme/2');
  ask('c', 'globex/1');
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'c']);
});

test('nobody waits forever', async () => {
  const { ask, end, take, semaphore } = noted({ atOnce: 1, waitMs: 1 });
  ask('first', 'busy');
  await expect(take('second', 'ada')).rejects.toMatchObject({ status: 503 });
  expect(semaphore.waiting).toBe(0);
  await end('first');
  expect(semaphore.running).toBe(0);
});

test('callers that leave the queue are skipped; running work keeps its slot until it ends', async () => {
  const { ask, begun, end, take, semaphore } = noted({ atOnce: 1 });
  const [first, second] = [new AbortController(), new AbortController()];
  ask('first', 'busy', first.signal);
  const leaving = take('second', 'ada', second.signal);
  ask('third', 'bob');
  second.abort();
  await expect(leaving).rejects.toMatchObject({ status: 503 });
  first.abort();
  expect([semaphore.running, semaphore.waiting]).toEqual([1, 1]);
  await end('first');
  expect(begun).toEqual(['first', 'third']);
  await expect(take('late', 'busy', first.signal)).rejects.toMatchObject({ status: 503 });
});

test('failing work releases its slot, and a slot is released only once', async () => {
  const semaphore = new FairSemaphore({ atOnce: 1 });
  const caller = { userId: 'ada', tokenId: 'token' };
  await expect(semaphore.run(caller, null, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await expect(semaphore.run(caller, null, async () => 'yes')).resolves.toBe('yes');
  const end = await semaphore.take(caller, null);
  end();
  end();
  expect(semaphore.running).toBe(0);
});
