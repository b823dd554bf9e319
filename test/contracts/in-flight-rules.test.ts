import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import {
  type ArrivingBody,
  type BudgetState,
  chooseEvictions,
  isOverLimit,
  mayAcquire,
  mayWait,
} from '../../src/shared/platform/payloads/in-flight-rules.ts';
import { inFlightScript } from '../../src/shared/platform/payloads/in-flight-script.ts';
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
  local room, body = ask.room, ask.room.arriving[ask.which]
  local places = {}
  for place, each in ipairs(room.arriving) do places[each] = place - 1 end
  local leaving = {}
  for _, each in ipairs(chooseEvictions(room, body, ask.bytes, ${now}, ${patience.withYielding}, ${patience.withOthers})) do
    leaving[#leaving + 1] = tostring(places[each])
  end
  answers[at] = cjson.encode({
    mayAcquire(room, body, ask.bytes, {}), mayWait(room, body, ask.bytes), isOverLimit(room, body, ask.bytes, {}),
    table.concat(leaving, ' ')
  })
end
return answers`;

function byRules({ capacity, complete, arriving, which, bytes }: Ask): unknown[] {
  const state: BudgetState = { capacity, complete: new Map(Object.entries(complete)), arriving };
  const asking = arriving[which % arriving.length] as ArrivingBody;
  const leaving = chooseEvictions(state, asking, bytes, now, patience).map((each) =>
    arriving.indexOf(each as Ask['arriving'][0]),
  );
  return [
    mayAcquire(state, asking, bytes),
    mayWait(state, asking, bytes),
    isOverLimit(state, asking, bytes),
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
});
