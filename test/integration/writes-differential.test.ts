import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withLateChanges } from '../support/differential/late-changes.ts';
import { createOriginal, differences, playBy } from '../support/differential/outcome.ts';
import { playWrites, type Writing, writing } from '../support/differential/writes.ts';

// A replica commits small bodies itself, applies a delta to the text that it has kept, knows leases from before, and adds entries with one
// statement. Or a worker commits, on a body from the payload store, what another replica has admitted; and a change limit looks at entries in
// a transaction. Both must accept and keep the same. HOLDFAST_TEST_WAYS_SEED makes other choices, HOLDFAST_TEST_WAYS_UPDATES
// makes it longer.

const seed = Number(process.env['HOLDFAST_TEST_WAYS_SEED'] ?? 31);
const updateCount = Number(process.env['HOLDFAST_TEST_WAYS_UPDATES'] ?? 80);

/** Gives the update a rule that allows everything. */
const verifier = `
  with g as (insert into update_limits (update_id, limits) values ($1,
    '{"stack":"a/b/c","kind":"update","commit":null,"change-limit":{"scope":"x","note":"","changes":100000,"percent":null},"needsJournal":true,"protectedTypes":[]}'))
  update updates set is_limited = true where id = $1`;

test('what is written here and by workers is the same', async () => {
  const writings = fc.sample(writing, { numRuns: updateCount, seed });
  await using original = await createOriginal(writings.length);
  const writingOf = ({ name }: { readonly name: string }): Writing => writings[Number(name.slice(1))] as Writing;
  const [here, byWorkers] = await withLateChanges(async () => [
    await playBy(original, {
      play: (apps, client, fixture) => playWrites(apps, client, fixture, writingOf(fixture), async () => {}),
    }),
    await playBy(original, {
      ...{ replicas: 2, settings: { HOLDFAST_DIRECT_BYTES: '1' } },
      play: (apps, client, fixture) =>
        playWrites(apps, client, fixture, writingOf(fixture), (id) => client.query(verifier, [id])),
    }),
  ]);
  if (!here || !byWorkers) throw new Error('nothing was played');
  const counts: Record<string, number> = {};
  for (const { status, step } of [...here.answers.values()].flat() as { step: { write?: string }; status: number }[]) {
    const name = `${step.write ?? 'export'} ${status}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  process.stderr.write(`differential writes, seed ${seed}: ${JSON.stringify(counts)}\n`);
  const found = differences(original, here, byWorkers).filter((line) => !line.includes('"is_limited"'));
  expect({ seed, differences: found }).toEqual({ seed, differences: [] });
  expect(Object.keys(counts).filter((name) => / 5\d\d$/.test(name))).toEqual([]);
});
