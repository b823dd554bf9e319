import { expect, test } from '@jest/globals';
import { TimeSlices } from './slices.ts';

/** Counts ticks of the event loop until `stop`. */
function countTicks() {
  let [count, isOn] = [0, true];
  const tick = (): void => {
    count++;
    if (isOn) setImmediate(tick);
  };
  setImmediate(tick);
  const stop = (): void => {
    isOn = false;
  };
  return { now: () => count, stop };
}

test('one work has a turn in each tick, in the order in which they asked', async () => {
  const ticks = new TimeSlices();
  const loop = countTicks();
  const turns: { readonly name: string; readonly tick: number }[] = [];
  const work = async (name: string): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) {
      await ticks.next();
      turns.push({ name, tick: loop.now() });
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  loop.stop();
  expect(turns.map(({ name }) => name).join('')).toBe('abcabcabc');
  expect(new Set(turns.map(({ tick }) => tick)).size).toBe(turns.length);
});

test('a work that has had the tick for long pauses', async () => {
  const ticks = new TimeSlices();
  await ticks.next();
  const loop = countTicks();
  const begun = performance.now();
  while (performance.now() - begun < 10);
  await ticks.pause();
  expect(loop.now()).toBeGreaterThan(0);
  loop.stop();
});
