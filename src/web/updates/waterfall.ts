import type { ResourceRow } from './update-progress.ts';

/** The time that a resource took in an update. Times are Unix times in seconds. */
export interface Bar {
  row: ResourceRow;
  start: number;
  end: number;
  /** Bars of one lane do not overlap: the number of lanes is the degree of parallelism. */
  lane: number;
  isRunning: boolean;
  isCritical: boolean;
}

/** The bars of an update in the order of their starts. */
export interface Waterfall {
  bars: Bar[];
  start: number;
  end: number;
  laneCount: number;
  /** Duration of the longest chain of bars in which each waits for the previous one. Seconds. */
  criticalSeconds: number;
}

/**
 * Times of the resources that an update worked on. `dependenciesOf` names the known dependencies of a resource;
 * its parent and bars that ended when it started are further candidates (the CLI does not send dependencies).
 */
export function layOutWaterfall(
  rows: Iterable<ResourceRow>,
  nowSeconds: number,
  dependenciesOf: (urn: string) => readonly string[] | null = () => null,
): Waterfall {
  const bars: Bar[] = [];
  for (const row of rows) {
    // A component only groups others and lasts as long as they do, and the stack as long as the update.
    if (row.startedAt === null || row.type === 'pulumi:pulumi:Stack') continue;
    const isRunning = row.status === 'running';
    const end = isRunning ? Math.max(nowSeconds, row.startedAt) : (row.endedAt ?? row.startedAt);
    bars.push({ row, start: row.startedAt, end, lane: 0, isRunning, isCritical: false });
  }
  bars.sort((one, other) => one.start - other.start || one.end - other.end);
  const laneCount = assignLanes(bars);
  const critical = findCriticalPath(bars, dependenciesOf);
  for (const bar of critical) bar.isCritical = true;
  const first = critical[0];
  const last = critical.at(-1);
  return {
    bars,
    start: bars[0]?.start ?? nowSeconds,
    end: bars.reduce((latest, bar) => Math.max(latest, bar.end), bars[0]?.end ?? nowSeconds),
    laneCount,
    criticalSeconds: first === undefined || last === undefined ? 0 : last.end - first.start,
  };
}

/** Gives each bar the first lane that is free at its start. Takes n log n. */
function assignLanes(bars: readonly Bar[]): number {
  const busy: { end: number; lane: number }[] = [];
  const free: number[] = [];
  let count = 0;
  for (const bar of bars) {
    while (busy[0] !== undefined && busy[0].end <= bar.start) free.push(pop(busy).lane);
    bar.lane = free.pop() ?? count++;
    // Steps of less than a second have no length, but take their place.
    push(busy, { end: Math.max(bar.end, bar.start + 1), lane: bar.lane });
  }
  return count;
}

/**
 * The critical path: from the bar that ended last back to the bar it waited for, each time
 * the one that ended last.
 */
function findCriticalPath(bars: readonly Bar[], dependenciesOf: (urn: string) => readonly string[] | null): Bar[] {
  const byUrn = new Map(bars.map((bar) => [bar.row.urn, bar]));
  const byEnd = [...bars].sort((one, other) => one.end - other.end);
  const path: Bar[] = [];
  const taken = new Set<Bar>();
  let bar = byEnd.at(-1);
  while (bar !== undefined && !taken.has(bar)) {
    taken.add(bar);
    path.unshift(bar);
    bar = findPredecessor(bar, byUrn, byEnd, dependenciesOf(bar.row.urn));
  }
  return path;
}

function findPredecessor(
  bar: Bar,
  byUrn: ReadonlyMap<string, Bar>,
  byEnd: readonly Bar[],
  dependencies: readonly string[] | null,
): Bar | undefined {
  if (dependencies === null) {
    const before = byEnd[lastEndingBy(byEnd, bar.start)];
    // Seconds are coarse. A bar that ended long before is not the one this bar waited for.
    return before !== undefined && before !== bar && before.start < bar.start && bar.start - before.end <= 1
      ? before
      : undefined;
  }
  let latest: Bar | undefined;
  for (const urn of dependencies) {
    const candidate = byUrn.get(urn);
    if (candidate === undefined || candidate === bar || candidate.end > bar.start) continue;
    if (latest === undefined || candidate.end > latest.end) latest = candidate;
  }
  return latest;
}

/** Index of the last bar that ends at `time` or before it, or -1. */
function lastEndingBy(byEnd: readonly Bar[], time: number): number {
  let low = 0;
  let high = byEnd.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((byEnd[middle] as Bar).end <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

interface Busy {
  end: number;
  lane: number;
}

function push(heap: Busy[], item: Busy): void {
  heap.push(item);
  let at = heap.length - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    if ((heap[above] as Busy).end <= (heap[at] as Busy).end) return;
    [heap[above], heap[at]] = [heap[at] as Busy, heap[above] as Busy];
    at = above;
  }
}

function pop(heap: Busy[]): Busy {
  const top = heap[0] as Busy;
  const last = heap.pop() as Busy;
  if (heap.length === 0) return top;
  heap[0] = last;
  for (let at = 0; ; ) {
    const left = 2 * at + 1;
    const right = left + 1;
    let least = at;
    if (left < heap.length && (heap[left] as Busy).end < (heap[least] as Busy).end) least = left;
    if (right < heap.length && (heap[right] as Busy).end < (heap[least] as Busy).end) least = right;
    if (least === at) return top;
    [heap[least], heap[at]] = [heap[at] as Busy, heap[least] as Busy];
    at = least;
  }
}
