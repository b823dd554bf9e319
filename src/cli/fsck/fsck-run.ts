import type { AppContext } from '../../shared/context.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { FsckReport } from './finding.ts';

export interface FsckOptions {
  readonly fixes: boolean;
  /** How many documents of each kind, and heads, are read; null: all. */
  readonly sample: number | null;
  /** Null: keys are not checked. */
  readonly ring: KeyRing | null;
  readonly report?: FsckReport;
  /** Gets how many of what were checked so far. */
  readonly onProgress?: (what: string, count: number) => void;
}

/** A run of all checks. */
export class FsckRun {
  readonly context: AppContext;
  readonly fixes: boolean;
  readonly sample: number | null;
  readonly report: FsckReport;
  readonly #onProgress: (what: string, count: number) => void;

  constructor(context: AppContext, { fixes, onProgress = () => {}, report = new FsckReport(), sample }: FsckOptions) {
    this.context = context;
    this.fixes = fixes;
    this.sample = sample;
    this.report = report;
    this.#onProgress = onProgress;
  }

  /** Counts what was checked. */
  step(what: string, by = 1): void {
    this.report.count(what, by);
    this.#onProgress(what, this.report.checked[what] ?? 0);
  }

  /** Runs one check; its failure is a finding, and the others go on. */
  async item(what: string, object: string, check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.report.add('not-checked', `${what} ${object}`.trim(), { detail: (error as Error).message });
    }
  }
}
