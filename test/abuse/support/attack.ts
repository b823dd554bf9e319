import { setTimeout as sleep } from 'node:timers/promises';
import { memoryOf, resetPeak } from '../../../bench/support/measures.ts';
import type { Statuses } from './calls.ts';
import { type Innocent, workAside } from './innocent-tenant.ts';
import type { Target } from './target.ts';

/** An attack that runs until its signal is aborted. */
export interface Attack {
  readonly name: string;
  /** Preparation, which is not measured. */
  readonly prepare?: (target: Target) => Promise<void>;
  /** Resolves with the responses to the attacker. */
  readonly run: (target: Target, signal: AbortSignal) => Promise<Statuses>;
}

export interface AttackReport {
  readonly shape: Target['shape'];
  readonly attack: string;
  readonly innocent: Innocent;
  readonly answers: Statuses;
  /** Of the largest process, in MB. */
  readonly rssBefore: number;
  readonly rssPeak: number;
}

/** Maximum time for the innocent tenant to get something done, in ms. */
const doneLimitMs = 60_000;
/** Maximum time for an attack and the innocent tenant to stop after the signal, in ms. */
const endLimitMs = 120_000;

/** Attacks for `seconds`, and until another tenant has got something done; returns what both experienced. */
export async function attack(target: Target, { name, prepare, run }: Attack, seconds: number): Promise<AttackReport> {
  await prepare?.(target);
  const pids = [...target.processes.values()].map((pid) => pid());
  await Promise.all(pids.map(resetPeak));
  const before = await Promise.all(pids.map(memoryOf));
  const end = new AbortController();
  const limit = AbortSignal.timeout(seconds * 1000 + endLimitMs);
  const late = new Promise<never>((_, reject) => {
    limit.addEventListener('abort', () => reject(new Error(`${name} did not come to its end`)));
  });
  const somethingDone = Promise.withResolvers<void>();
  const timers = [
    sleep(seconds * 1000, undefined, { signal: end.signal }),
    Promise.race([somethingDone.promise, sleep(doneLimitMs, undefined, { signal: end.signal })]),
  ];
  const ending = Promise.all(timers).then(
    () => end.abort(),
    () => {},
  );
  try {
    const working = workAside(target, end.signal, somethingDone.resolve);
    const [answers, innocent] = await Promise.race([Promise.all([run(target, end.signal), working]), late]);
    const after = await Promise.all(pids.map(memoryOf));
    return {
      shape: target.shape,
      attack: name,
      innocent,
      answers,
      rssBefore: Math.max(...before.map(({ now }) => now)),
      rssPeak: Math.max(...after.map(({ peak }) => peak)),
    };
  } finally {
    end.abort();
    await ending;
  }
}
