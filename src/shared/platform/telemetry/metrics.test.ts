import { expect, jest, test } from '@jest/globals';
import { createMetrics } from './metrics.ts';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('a query that has not answered is not asked again, and its answer is used when it comes', async () => {
  const metrics = createMetrics();
  const answers: ((value: number) => void)[] = [];
  const read = () => new Promise<number>((resolve) => answers.push(resolve));
  metrics.gaugeByQuery('by_query', 'One label.', 'kind', async () => ({ some: await read() }));
  metrics.gaugeByLabels('by_labels', 'Labels.', ['kind'], async () => [
    { labels: { kind: 'some' }, value: await read() },
  ]);
  metrics.gaugesByQuery({ some: { name: 'shared', help: 'No label.' } }, async () => ({ some: await read() }));
  jest.useFakeTimers();
  try {
    for (let scrape = 1; scrape <= 2; scrape++) {
      const late = metrics.registry.metrics();
      await jest.advanceTimersByTimeAsync(2_000);
      await late;
    }
    expect(answers).toHaveLength(3);
  } finally {
    jest.useRealTimers();
  }
  const scrape = metrics.registry.metrics();
  for (const answer of answers) answer(7);
  expect((await scrape).match(/ 7$/gm)).toHaveLength(3);
});

test('a query that always takes longer than a scrape waits gives its answer to the next one', async () => {
  const metrics = createMetrics();
  let reads = 0;
  const read = async (): Promise<number> => {
    const answer = ++reads;
    await sleep(1_500);
    return answer;
  };
  metrics.gaugeByQuery('by_query', 'One label.', 'kind', async () => ({ some: await read() }));
  metrics.gaugesByQuery({ some: { name: 'shared', help: 'No label.' } }, async () => ({ some: await read() }), 60_000);
  const scrape = async (): Promise<string[]> => {
    const text = metrics.registry.metrics();
    await jest.advanceTimersByTimeAsync(15_000);
    return (await text).match(/^(by_query|shared)\S* \d$/gm) ?? [];
  };
  jest.useFakeTimers();
  try {
    expect(await scrape()).toEqual([]);
    expect(await scrape()).toEqual(['by_query{kind="some"} 1', 'shared 2']);
    expect(await scrape()).toEqual(['by_query{kind="some"} 3', 'shared 2']);
  } finally {
    jest.useRealTimers();
  }
});

test('a gauge that queries the database is read once per interval, and keeps its value meanwhile', async () => {
  const metrics = createMetrics();
  const reads = { always: 0, seldom: 0 };
  const count = (name: keyof typeof reads) => async () => ({ some: ++reads[name] });
  metrics.gaugeByQuery('always', 'Read at each scrape.', 'kind', count('always'));
  metrics.gaugeByQuery('seldom', 'Read every minute.', 'kind', count('seldom'), 60_000);
  await Promise.all([metrics.registry.metrics(), metrics.registry.metrics()]);
  const text = await metrics.registry.metrics();
  // Scrapes at the same time share a query.
  expect(reads).toEqual({ always: 2, seldom: 1 });
  expect(text).toContain('seldom{kind="some"} 1');
});

test('gauges that share a query read it once per scrape, and are absent until it answers', async () => {
  const metrics = createMetrics();
  let reads = 0;
  metrics.gaugesByQuery(
    { some: { name: 'some', help: 'One part.' }, seconds: { name: 'some_seconds', help: 'Another.' } },
    async () => {
      if (++reads === 1) throw new Error('The database is away');
      return { some: reads, seconds: 10 * reads };
    },
  );
  expect(await metrics.registry.metrics()).not.toMatch(/^some(_seconds)? /m);
  const text = await metrics.registry.metrics();
  expect(reads).toBe(2);
  expect(text).toContain('\nsome 2\n');
  expect(text).toContain('\nsome_seconds 20\n');
});
