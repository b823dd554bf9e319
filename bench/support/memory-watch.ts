import type { ClusterProcess } from '../../testkit/cluster-process.ts';
import { memoryOf } from './measures.ts';

const everyMs = 250;

/** Samples the resident memory of the processes of one role, in MB. */
export class MemoryWatch {
  readonly #processes: readonly ClusterProcess[];
  readonly #timer: NodeJS.Timeout;
  readonly #began = performance.now();
  readonly #samples: { atMs: number; highest: number }[] = [];

  private constructor(processes: readonly ClusterProcess[]) {
    this.#processes = processes;
    this.#timer = setInterval(() => void this.#sample(), everyMs);
  }

  static async begin(processes: readonly ClusterProcess[]): Promise<MemoryWatch> {
    const watch = new MemoryWatch(processes);
    await watch.#sample();
    return watch;
  }

  /** Stops sampling. Returns the memory of the largest process in the first sample, at the peak, and in the last one. */
  async end(): Promise<{ first: number; highest: number; last: number }> {
    clearInterval(this.#timer);
    await this.#sample();
    const counts = this.#samples.map(({ highest }) => highest);
    return { first: counts[0] ?? Number.NaN, highest: Math.max(...counts), last: counts.at(-1) ?? Number.NaN };
  }

  /** Returns the seconds during which any process was above `level`. */
  secondsAbove(level: number): number {
    const above = this.#samples.filter(({ highest }) => highest > level).length;
    return (above * everyMs) / 1000;
  }

  /** The largest process over time, as about `points` values. */
  curve(points: number): string {
    const step = Math.max(1, Math.ceil(this.#samples.length / points));
    return this.#samples
      .filter((_sample, index) => index % step === 0)
      .map(({ atMs, highest }) => `${(atMs / 1000).toFixed(1)} s ${highest.toFixed(0)}`)
      .join(', ');
  }

  async #sample(): Promise<void> {
    const now = await Promise.all(this.#processes.map(async ({ pid }) => (await memoryOf(pid)).now));
    this.#samples.push({ atMs: performance.now() - this.#began, highest: Math.max(...now) });
  }
}
