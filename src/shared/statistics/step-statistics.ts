import { nextSlice } from '../platform/slices/slices.ts';
import { urnKey } from '../state/deployments/live-urns.ts';
import type { Dependencies } from './dependency-scanner.ts';
import type { Step } from './step-times.ts';

const maxSlowest = 10;
const maxPathSteps = 100;
/** In whole seconds, a step that ended in the second in which another began may have ended before it. */
const toleranceSeconds = 1;

export interface StepView {
  readonly urn: string;
  readonly type: string;
  readonly operation: string;
  /** After the beginning of the first step. */
  readonly startSeconds: number;
  readonly seconds: number;
}

export interface StepStatistics {
  /** Ended steps, and failed ones. */
  readonly count: number;
  readonly failed: number;
  readonly slowest: readonly StepView[];
  /** Steps that waited for each other and took the longest; null if unknown. */
  readonly criticalPath: { readonly seconds: number; readonly steps: readonly StepView[] } | null;
}

/** Null for unknown dependencies. */
export async function statisticsOf(
  steps: readonly Step[],
  isCut: boolean,
  dependencies: Dependencies | null,
): Promise<StepStatistics> {
  const first = steps.reduce((least, { startedAt }) => Math.min(least, startedAt), Number.POSITIVE_INFINITY);
  const show = ({ endedAt, operation, startedAt, type, urn }: Step): StepView => ({
    ...{ urn, type, operation },
    startSeconds: startedAt - first,
    seconds: endedAt - startedAt,
  });
  const slowest = [...steps].sort((a, b) => b.endedAt - b.startedAt - (a.endedAt - a.startedAt)).slice(0, maxSlowest);
  const path = isCut || dependencies === null ? [] : await criticalPath(steps, dependencies);
  const [begin] = path;
  const end = path.at(-1);
  return {
    count: steps.length,
    failed: steps.filter(({ isFailed }) => isFailed).length,
    slowest: slowest.map(show),
    criticalPath: begin && end ? { seconds: end.endedAt - begin.startedAt, steps: path.map(show) } : null,
  };
}

/**
 * Goes from the step that ended last back to the step for which it waited, and so on. This is the step that ended last among those that had
 * to end before it. The first step comes first.
 */
async function criticalPath(steps: readonly Step[], { before, after }: Dependencies): Promise<Step[]> {
  const byResource = Map.groupBy(steps, ({ urn }) => urnKey(urn));
  const path: Step[] = [];
  const seen = new Set<Step>();
  let step = latest(steps);
  while (step && !seen.has(step) && path.length < maxPathSteps) {
    path.unshift(step);
    seen.add(step);
    const { operation, startedAt, urn } = step;
    const key = urnKey(urn);
    // A resource is deleted after its dependents, and created after its dependencies. Its replacement has several steps.
    const others = (isDelete(step) ? after : before).get(key) ?? new Set();
    const mayHaveWaitedFor = (other: Step): boolean =>
      !seen.has(other) &&
      other.endedAt <= startedAt + toleranceSeconds &&
      other.startedAt <= startedAt &&
      (other.urn === urn ? other.operation !== operation : isDelete(other) === operation.startsWith('delete'));
    step = undefined;
    // Each step is visited at most once, and none is copied into a list: a client chooses their number.
    for (const resource of new Set([key, ...others]))
      for (const other of byResource.get(resource) ?? [])
        if (mayHaveWaitedFor(other) && !(step && step.endedAt >= other.endedAt)) step = other;
    await nextSlice();
  }
  return path;
}

function isDelete({ operation }: Step): boolean {
  return operation.startsWith('delete');
}

function latest(steps: readonly Step[]): Step | undefined {
  return steps.reduce<Step | undefined>(
    (last, step) => (last && last.endedAt >= step.endedAt ? last : step),
    undefined,
  );
}
