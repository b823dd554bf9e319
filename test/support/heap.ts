import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** By how many bytes the heap is larger after the work, as long as its result is kept. */
export async function heapGrowth(work: () => unknown): Promise<number> {
  const before = heapBytes();
  const kept = await work();
  const growth = heapBytes() - before;
  // Used after the measurement: otherwise it might have been collected.
  if (kept === undefined) throw new Error('The work must return what is kept');
  return growth;
}

function heapBytes(): number {
  collectGarbage();
  return getHeapStatistics().used_heap_size;
}
