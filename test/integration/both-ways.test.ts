import { expect, test } from '@jest/globals';
import { createOriginal, differences, type Outcome, playAll } from '../support/both-ways/outcome.ts';
import { withLateChanges } from '../support/both-ways/played-world.ts';
import { sampleWorlds } from '../support/both-ways/sampled-worlds.ts';
import { countWays, decideNothing } from '../support/both-ways/statement-ways.ts';

// One statement begins or ends an update, or a transaction does (ADR 10). Both must decide the same. Random worlds are played in two
// copies of a database; in one of them the statements decide nothing. HOLDFAST_TEST_WAYS_SEED makes other choices,
// HOLDFAST_TEST_WAYS_WORLDS plays more of them.

const seed = Number(process.env['HOLDFAST_TEST_WAYS_SEED'] ?? 31);
const worldsOfEach = Number(process.env['HOLDFAST_TEST_WAYS_WORLDS'] ?? 1);

/** Calls by what was asked and what was answered. */
function countAnswers({ answers }: Outcome): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, step } of [...answers.values()].flat()) {
    const name = 'call' in step ? `${step.call} ${status}` : 'change';
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

test('statements and transactions decide the same', async () => {
  await using original = await createOriginal(sampleWorlds(seed, { each: worldsOfEach, more: 20 * worldsOfEach }));
  const [byStatements, inSteps] = await withLateChanges(async () => [
    await playAll(original, countWays),
    await playAll(original, decideNothing),
  ]);
  if (!byStatements || !inSteps) throw new Error('nothing was played');
  const counts = countAnswers(byStatements);
  process.stderr.write(`both ways, seed ${seed}: ${JSON.stringify({ ways: byStatements.ways, ...counts })}\n`);
  expect({ seed, differences: differences(original, byStatements, inSteps) }).toEqual({ seed, differences: [] });
  expect(Object.keys(counts).filter((name) => / 5\d\d$/.test(name))).toEqual([]);
  // Neither way is tested by chance only.
  for (const { decided, left } of byStatements.ways) expect(Math.min(decided, left)).toBeGreaterThan(10);
  expect(inSteps.ways.map(({ decided }) => decided)).toEqual([0, 0, 0]);
});
