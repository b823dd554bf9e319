import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { BudgetSums } from '../../src/shared/platform/payloads/budget-sums.ts';
import { chooseEvictions, mayAcquire, mayWait } from '../../src/shared/platform/payloads/in-flight-rules.ts';
import { inFlightScript } from '../../src/shared/platform/payloads/in-flight-script.ts';
import { RedisInFlightBudget } from '../../src/shared/platform/payloads/redis-in-flight-budget.ts';
import { connectRedis, untilReady } from '../../src/shared/platform/redis/redis.ts';
import { describeOnRedis } from './redis-under-test.ts';

const now = 1_000;
const patience = { withYielding: 20, withOthers: 300 };
const optional = (most: number) => fc.option(fc.integer({ min: 0, max: most }), { nil: null });

const body = fc.record({
  held: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60 })),
  claim: optional(120),
  yields: fc.boolean(),
  fairnessKey: fc.constantFrom('a', 'b', 'c'),
  keyLimit: optional(80),
  blockedSince: fc.option(fc.integer({ min: 600, max: now }), { nil: null }),
  stalled: fc.boolean(),
  evicted: fc.boolean(),
});
const budget = fc.record({
  capacity: fc.integer({ min: 50, max: 150 }),
  complete: fc.dictionary(fc.constantFrom('a', 'b', 'd'), fc.integer({ min: 1, max: 60 })),
  arriving: fc.array(body, { minLength: 1, maxLength: 7 }),
  which: fc.nat(),
  bytes: fc.integer({ min: 0, max: 40 }),
});
type Ask = typeof budget extends fc.Arbitrary<infer T> ? T : never;

const script = `${inFlightScript}
local answers = {}
for at, ask in ipairs(cjson.decode(ARGV[1])) do
  local budget, body = ask.budget, ask.budget.arriving[ask.which]
  local sums, places = sumUp(budget, {}), {}
  for place, each in ipairs(budget.arriving) do places[each] = place - 1 end
  local leaving = {}
  for _, each in ipairs(chooseEvictions(budget, body, ask.bytes, ${now}, ${patience.withYielding}, ${patience.withOthers})) do
    leaving[#leaving + 1] = tostring(places[each])
  end
  answers[at] = cjson.encode({
    mayAcquire(sums, body, ask.bytes), mayWait(sums, body, ask.bytes), isOverLimit(sums, body, ask.bytes),
    table.concat(leaving, ' ')
  })
end
return answers`;

function byRules({ capacity, complete, arriving, which, bytes }: Ask): unknown[] {
  const sums = new BudgetSums({ capacity, complete: new Map(Object.entries(complete)), arriving });
  const asking = arriving[which % arriving.length] as Ask['arriving'][0];
  const staying = sums.without(arriving.filter((each) => each.evicted && each !== asking));
  const leaving = chooseEvictions(staying, asking, bytes, now, patience).map((each) => arriving.indexOf(each));
  return [
    mayAcquire(sums, asking, bytes),
    mayWait(sums, asking, bytes),
    sums.isOverLimit(asking, bytes),
    leaving.join(' '),
  ];
}

function forScript({ capacity, complete, arriving, which, bytes }: Ask): object {
  const bodies = arriving.map(({ claim, fairnessKey, keyLimit, blockedSince, evicted, ...rest }) => ({
    ...rest,
    claim: claim ?? -1,
    share: fairnessKey,
    limit: keyLimit ?? -1,
    blocked: blockedSince ?? 0,
    leaves: evicted,
  }));
  return { budget: { capacity, complete, arriving: bodies }, which: (which % arriving.length) + 1, bytes };
}

await describeOnRedis((server) => {
  let redis: Redis;
  beforeAll(async () => {
    redis = connectRedis(server().url, 'producer', createLogger({ level: 'silent' })) as Redis;
    await untilReady(redis, 60_000);
  });
  afterAll(() => redis.disconnect());

  it('decides in Redis as in memory for random budgets', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(budget, { minLength: 100, maxLength: 100 }), async (asks) => {
        const answers = (await redis.eval(script, 0, JSON.stringify(asks.map(forScript)))) as string[];
        for (const [at, ask] of asks.entries()) {
          const expected = byRules(ask);
          expect({ ask, answer: JSON.parse(answers[at] as string) }).toEqual({ ask, answer: expected });
          seen.add(JSON.stringify(expected.map((each) => (typeof each === 'string' ? each !== '' : each))));
        }
      }),
      { numRuns: 50 },
    );
    // All kinds of decisions occurred.
    expect(seen.size).toBeGreaterThanOrEqual(6);
  });

  it('lets bodies try less often if many wait, but the oldest of each key as often as any', async () => {
    await redis.flushall();
    const times = { patience, lifeMs: 60_000, jobLifeMs: 60_000 };
    const inFlight = new RedisInFlightBudget(redis, 'imports', 100, times);
    const pauses: { fairnessKey: string; pauseMs: number }[] = [];
    for (let at = 0; at < 200; at++) {
      const fairnessKey = `key ${at % 4}`;
      const reservation = { key: `body ${at}`, claim: 20, waits: true, fairnessKey, keyLimit: null };
      const { result } = await inFlight.acquire(reservation, 20, false);
      if (result === 'acquired') continue;
      pauses.push({ fairnessKey, pauseMs: (await inFlight.acquire(reservation, 20, true)).pauseMs });
    }
    expect(pauses.length).toBeGreaterThan(190);
    // Without that, 1,000 attempts a second, each of which loads 200 bodies.
    expect(pauses.reduce((sum, { pauseMs }) => sum + 1_000 / pauseMs, 0)).toBeLessThan(200);
    for (const key of ['key 0', 'key 1', 'key 2', 'key 3'])
      expect(pauses.find(({ fairnessKey }) => fairnessKey === key)?.pauseMs).toBe(200);
    expect(Math.max(...pauses.map(({ pauseMs }) => pauseMs))).toBeLessThanOrEqual(5_000);
  });
});
