import { expect, test } from '@jest/globals';
import { TimeSlices } from './slices.ts';

/** Counts ticks of the event loop until `stop`. */
function countSlices() {
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

test('each tick gives one computation a time slice, in the order of their requests', async () => {
  const slices = new TimeSlices();
  const loop = countSlices();
  const calls: { readonly name: string; readonly tick: number }[] = [];
  const work = async (name: string): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await slices.next();
      calls.push({ name, tick: loop.now() });
    }
  };
  await Promise.all(['a', 'b', 'c'].map(work));
  loop.stop();
  expect(calls.map(({ name }) => name).join('')).toBe('abcabcabc');
  expect(new Set(calls.map(({ tick }) => tick)).size).toBe(calls.length);
});

test('a computation that has used its time slice pauses', async () => {
  const slices = new TimeSlices();
  await slices.next();
  const loop = countSlices();
  const begun = performance.now();
  while (performance.now() - begun < 10);
  await slices.pause();
  expect(loop.now()).toBeGreaterThan(0);
  loop.stop();
});
