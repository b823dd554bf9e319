import type { ProjectOrder } from '../platform/app/ci-search.ts';
import type { CiStatistics } from '../platform/app/procedure-types.ts';
import { oneDecimal } from '../platform/ui/locale.ts';

type Statistics = Omit<CiStatistics['days'][number], 'day'>;

const none: Statistics = {
  runs: 0,
  failed: 0,
  cancelled: 0,
  previews: 0,
  failedPreviews: 0,
  waits: 0,
  runMs: 0,
  waitedMs: 0,
  longestMs: 0,
  refused: 0,
};

/** The totals. */
export function sumStatistics(all: readonly Statistics[]): Statistics {
  return all.reduce<Statistics>(
    (sum, each) => ({
      runs: sum.runs + each.runs,
      failed: sum.failed + each.failed,
      cancelled: sum.cancelled + each.cancelled,
      previews: sum.previews + each.previews,
      failedPreviews: sum.failedPreviews + each.failedPreviews,
      waits: sum.waits + each.waits,
      runMs: sum.runMs + each.runMs,
      waitedMs: sum.waitedMs + each.waitedMs,
      longestMs: Math.max(sum.longestMs, each.longestMs),
      refused: sum.refused + each.refused,
    }),
    none,
  );
}

/** Mean duration of a run, in ms. */
export function meanMs({ runMs, runs }: Pick<Statistics, 'runMs' | 'runs'>): number {
  return runs === 0 ? 0 : runMs / runs;
}

/** "12 %", "0.4 %"; "–" if `all` is 0. */
export function rate(part: number, all: number): string {
  if (all === 0) return '–';
  const percent = (100 * part) / all;
  return `${percent === 0 || percent >= 10 ? Math.round(percent) : oneDecimal.format(percent)} %`;
}

/** Projects, the ones that need attention first. */
export function orderProjects<P extends Statistics & { readonly project: string }>(
  projects: readonly P[],
  order: ProjectOrder,
): P[] {
  const weigh: Record<ProjectOrder, (project: P) => number> = {
    slowest: meanMs,
    failures: ({ failed }) => failed,
    queue: ({ waitedMs }) => waitedMs,
    runs: ({ runs }) => runs,
  };
  return projects.toSorted((a, b) => weigh[order](b) - weigh[order](a) || (a.project < b.project ? -1 : 1));
}
