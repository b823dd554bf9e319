/** Foretells how long builds take, from what they took on two idle cores and from how this machine has done so far. */
export class BuildPlan {
  readonly #open = new Map<string, number>();
  #typicalDone = 0;
  #actualDone = 0;

  /** A build that will come, with the seconds that it takes on two idle cores. */
  expect(label: string, typicalSeconds: number): void {
    this.#open.set(label, typicalSeconds);
  }

  /** A build has ended after so many seconds. */
  finish(label: string, actualSeconds: number): void {
    const typicalSeconds = this.#open.get(label);
    if (typicalSeconds === undefined) return;
    this.#open.delete(label);
    this.#typicalDone += typicalSeconds;
    this.#actualDone += actualSeconds;
  }

  /** Seconds until all builds are done, 0 when nobody can tell; `label` is under way, for `elapsedSeconds`. */
  secondsLeft(label?: string, elapsedSeconds = 0): number {
    const current = label === undefined ? 0 : (this.#open.get(label) ?? 0);
    const all = [...this.#open.values()].reduce((sum, each) => sum + each, 0);
    const measured = this.#typicalDone > 0 ? this.#actualDone / this.#typicalDone : 1;
    // One that takes longer than it should says that the machine is slower than was thought.
    const pace = current > 0 ? Math.max(measured, elapsedSeconds / current) : measured;
    return Math.max(0, Math.round(all * pace - elapsedSeconds));
  }
}

/** A duration as people say it. */
export function inWords(seconds: number): string {
  return seconds < 90 ? `${Math.max(10, Math.ceil(seconds / 10) * 10)} s` : `${Math.round(seconds / 60)} min`;
}

/** Of this process. */
export const buildPlan = new BuildPlan();
