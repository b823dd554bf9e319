import type { ClusterProcess } from '../../testkit/cluster-process.ts';
import { memoryOf } from './figures.ts';

const everyMs = 250;

/** Resident memory of the processes of one role, sampled while something runs. In MB. */
export class MemoryWatch {
  readonly #parts: readonly ClusterProcess[];
  readonly #timer: NodeJS.Timeout;
  readonly #began = performance.now();
  readonly #samples: { atMs: number; highest: number }[] = [];

  private constructor(parts: readonly ClusterProcess[]) {
    this.#parts = parts;
    this.#timer = setInterval(() => void this.#sample(), everyMs);
  }

  static async begin(parts: readonly ClusterProcess[]): Promise<MemoryWatch> {
    const watch = new MemoryWatch(parts);
    await watch.#sample();
    return watch;
  }

  /** Of the process that had most: at first, at its highest, and now. */
  async end(): Promise<{ first: number; highest: number; last: number }> {
    clearInterval(this.#timer);
    await this.#sample();
    const figures = this.#samples.map(({ highest }) => highest);
    return { first: figures[0] ?? Number.NaN, highest: Math.max(...figures), last: figures.at(-1) ?? Number.NaN };
  }

  /** Seconds during which a process was above `level`. */
  secondsAbove(level: number): number {
    const above = this.#samples.filter(({ highest }) => highest > level).length;
    return (above * everyMs) / 1000;
  }

  /** The highest process once per interval, for a curve of about `points` figures. */
  curve(points: number): string {
    const step = Math.max(1, Math.ceil(this.#samples.length / points));
    return this.#samples
      .filter((_sample, index) => index % step === 0)
      .map(({ atMs, highest }) => `${(atMs / 1000).toFixed(1)} s ${highest.toFixed(0)}`)
      .join(', ');
  }

  async #sample(): Promise<void> {
    const now = await Promise.all(this.#parts.map(async ({ pid }) => (await memoryOf(pid)).now));
    this.#samples.push({ atMs: performance.now() - this.#began, highest: Math.max(...now) });
  }
}
