import type { Step } from './deployment.ts';
import { Choices } from './resources.ts';

/** In ms since the begin of its run. */
export interface StepTimes {
  readonly beganMs: number;
  readonly endedMs: number;
}

/** The relative duration of steps of these resources; 1 for others. */
const slow: readonly (readonly [RegExp, number])[] = [
  [/^aws:(rds|eks)\//, 14],
  [/^aws:cloudfront\//, 9],
  [/^aws:(ecs\/service|lb|wafv2)/, 5],
  [/:(Deployment|Release|NodeGroup)$/, 5],
];
/** The program runs before the first step, and the engine ends after the last one. */
const lead = 0.04;

/** Each step begins when all its dependencies have ended. */
export function scheduleOf(steps: readonly Step[], seconds: number): StepTimes[] {
  const ended = new Map<string, number>();
  const rough = steps.map(({ after, before, operation }) => {
    const { dependencies = [], parent, type, urn } = after ?? before ?? { urn: '', type: '' };
    const choices = new Choices(`${urn} ${seconds}`);
    const weight = slow.find(([pattern]) => pattern.test(type))?.[1] ?? 1;
    const took = operation === 'same' ? 0.05 : weight * (0.6 + 0.8 * choices.fraction());
    const began = Math.max(0, ...[...dependencies, parent ?? ''].map((name) => ended.get(name) ?? 0)) + 0.02;
    // A component ends with its last child, so no resource waits for the component itself.
    if (after?.custom !== false && type !== 'pulumi:pulumi:Stack') ended.set(urn, began + took);
    return { began, end: began + took };
  });
  const span = Math.max(1, ...rough.map(({ end }) => end));
  const scale = (seconds * 1000 * (1 - 2 * lead)) / span;
  return rough.map(({ began, end }) => ({
    beganMs: seconds * 1000 * lead + began * scale,
    endedMs: seconds * 1000 * lead + end * scale,
  }));
}
