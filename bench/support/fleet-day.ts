/** How a run of a pipeline ends. Killed: its runner is gone, and its lease expires. */
export type Fate = 'completed' | 'cancelled' | 'killed';

export interface Run {
  /** Since the beginning of the replay, in ms. */
  readonly atMs: number;
  /** Index of the stack. */
  readonly stack: number;
  readonly kind: 'update' | 'preview';
  readonly fate: Fate;
  readonly steps: number;
  /** Between two steps, in ms. */
  readonly stepMs: number;
}

export interface DayOptions {
  readonly stacks: number;
  readonly updatesPerStack: number;
  readonly speed: number;
  /** Of the replay. */
  readonly minutes: number;
  readonly seed: number;
}

/** Updates of each hour, relative to the mean: people work from 8 to 18. */
const hourWeights = [
  ...[0.3, 0.3, 0.4, 0.3, 0.3, 0.4, 0.7, 1, 1.6, 2, 2, 1.8],
  ...[1.4, 1.6, 2, 2, 1.8, 1.4, 0.8, 0.5, 0.4, 0.4, 0.3, 0.3],
];
/** Share of the updates that schedules start at the full hour, within two minutes. */
const scheduledShare = 0.4;
const previewsPerUpdate = 1.5;
const cancelledShare = 0.05;
const killedShare = 0.02;
const hourMs = 3_600_000;

/** Numbers from 0 to 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The runs of a day, or of the hours around noon if the replay is shorter, by time. */
export function runsOf({ minutes, seed, speed, stacks, updatesPerStack }: DayOptions): Run[] {
  const random = randomFrom(seed);
  const lengthMs = minutes * 60_000 * speed;
  const beginMs = Math.max(0, 12 * hourMs - Math.ceil(lengthMs / 2 / hourMs) * hourMs);
  const runs: Run[] = [];
  const perHour = (stacks * updatesPerStack) / hourWeights.reduce((sum, weight) => sum + weight, 0);
  const add = (kind: Run['kind'], dayMs: number): void => {
    const [stack, fate, length, pause] = [random(), random(), random(), random()] as const;
    const sinceMs = dayMs - beginMs;
    if (sinceMs < 0 || sinceMs >= lengthMs) return;
    runs.push({
      atMs: sinceMs / speed,
      stack: Math.floor(stack * stacks),
      kind,
      fate: kind === 'preview' ? 'completed' : fateOf(fate),
      steps: 3 + Math.floor(length * 25),
      // 2 to 10 s of the day.
      stepMs: (2_000 + pause * 8_000) / speed,
    });
  };
  for (const [hour, weight] of hourWeights.entries()) {
    const updates = Math.round(perHour * weight);
    for (let at = 0; at < updates; at++) {
      const isScheduled = at < updates * scheduledShare;
      add('update', hour * hourMs + random() * (isScheduled ? 120_000 : hourMs));
    }
    for (let at = 0; at < updates * previewsPerUpdate; at++) add('preview', hour * hourMs + random() * hourMs);
  }
  return runs.sort((a, b) => a.atMs - b.atMs);
}

function fateOf(random: number): Fate {
  if (random < killedShare) return 'killed';
  return random < killedShare + cancelledShare ? 'cancelled' : 'completed';
}
