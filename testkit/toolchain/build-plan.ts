/**
 * Estimates the remaining time of builds from their typical times on two idle cores and this machine's speed so far.
 */
export class BuildPlan {
  readonly #pending = new Map<string, number>();
  #typicalDone = 0;
  #actualDone = 0;

  expect(label: string, typicalSeconds: number): void {
    this.#pending.set(label, typicalSeconds);
  }

  /** Records that a build has finished after `actualSeconds`. */
  finish(label: string, actualSeconds: number): void {
    const typicalSeconds = this.#pending.get(label);
    if (typicalSeconds === undefined) return;
    this.#pending.delete(label);
    this.#typicalDone += typicalSeconds;
    this.#actualDone += actualSeconds;
  }

  /** Returns the seconds until all builds are done; 0 if unknown. `label` has been running for `elapsedSeconds`. */
  secondsLeft(label?: string, elapsedSeconds = 0): number {
    const current = label === undefined ? 0 : (this.#pending.get(label) ?? 0);
    const all = [...this.#pending.values()].reduce((sum, each) => sum + each, 0);
    const measured = this.#typicalDone > 0 ? this.#actualDone / this.#typicalDone : 1;
    // A build that takes longer than expected shows that the machine is slower than estimated.
    const pace = current > 0 ? Math.max(measured, elapsedSeconds / current) : measured;
    return Math.max(0, Math.round(all * pace - elapsedSeconds));
  }
}

/** Formats a duration for people. */
export function durationText(seconds: number): string {
  return seconds < 90 ? `${Math.max(10, Math.ceil(seconds / 10) * 10)} s` : `${Math.round(seconds / 60)} min`;
}

/** The build plan of this process. */
export const buildPlan = new BuildPlan();
