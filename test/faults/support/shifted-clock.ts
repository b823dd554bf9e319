import { readFileSync } from 'node:fs';

// Loaded into a process before anything else (`--import`): its clock is ahead of the machine's by the milliseconds in
// the file named by TEST_CLOCK_FILE, which can change while it runs. Timers are not affected, as with a real change of
// the clock.

const file = process.env['TEST_CLOCK_FILE'] as string;
const checkEveryMs = 20;

const RealDate = Date;
const realNow = Date.now;
let lookedAt = Number.NEGATIVE_INFINITY;
let shiftMs = 0;

function now(): number {
  if (performance.now() - lookedAt > checkEveryMs) {
    lookedAt = performance.now();
    shiftMs = Number(readFileSync(file, 'utf8'));
  }
  return realNow() + shiftMs;
}

RealDate.now = now;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, values: unknown[], newTarget) =>
    Reflect.construct(
      target,
      values.length === 0 ? [now()] : values,
      newTarget === globalThis.Date ? target : newTarget,
    ),
  apply: (target) => new target(now()).toString(),
});
