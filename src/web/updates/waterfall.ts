import type { ResourceRow } from './update-progress.ts';

/** Times are Unix times in seconds. */
export interface Bar {
  row: ResourceRow;
  start: number;
  end: number;
  /** Bars of one lane do not overlap: the number of lanes is the degree of parallelism. */
  lane: number;
  isRunning: boolean;
  isCritical: boolean;
}

/** Bars are in the order of their starts. */
export interface Waterfall {
  bars: Bar[];
  start: number;
  end: number;
  laneCount: number;
}

/** `critical` are URNs of the critical path, which the server finds after the end. */
export function layOutWaterfall(
  rows: Iterable<ResourceRow>,
  nowSeconds: number,
  critical: ReadonlySet<string> = new Set(),
): Waterfall {
  const bars: Bar[] = [];
  for (const row of rows) {
    // A component only groups others and lasts as long as they do; the stack lasts as long as the update.
    if (row.startedAt === null || row.type === 'pulumi:pulumi:Stack') continue;
    const isRunning = row.status === 'running';
    const end = isRunning ? Math.max(nowSeconds, row.startedAt) : (row.endedAt ?? row.startedAt);
    bars.push({ row, start: row.startedAt, end, lane: 0, isRunning, isCritical: critical.has(row.urn) });
  }
  bars.sort((one, other) => one.start - other.start || one.end - other.end);
  const laneCount = assignLanes(bars);
  return {
    bars,
    start: bars[0]?.start ?? nowSeconds,
    end: bars.reduce((latest, bar) => Math.max(latest, bar.end), bars[0]?.end ?? nowSeconds),
    laneCount,
  };
}

/** The first lane that is free at the bar's start. Takes n log n. */
function assignLanes(bars: readonly Bar[]): number {
  const busy: { end: number; lane: number }[] = [];
  const free: number[] = [];
  let count = 0;
  for (const bar of bars) {
    while (busy[0] !== undefined && busy[0].end <= bar.start) free.push(pop(busy).lane);
    bar.lane = free.pop() ?? count++;
    // Steps of less than a second have no length, but take up space.
    push(busy, { end: Math.max(bar.end, bar.start + 1), lane: bar.lane });
  }
  return count;
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
