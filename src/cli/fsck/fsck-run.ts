import type { AppContext } from '../../shared/context.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { FsckReport } from './finding.ts';

type OnProgress = (what: string, count: number, total: number | null) => void;

export interface FsckOptions {
  readonly fixes: boolean;
  /** How many documents of each kind, and heads, are read; null: all. */
  readonly sample: number | null;
  /** Null: keys are not checked. */
  readonly ring: KeyRing | null;
  readonly report?: FsckReport;
  /** Gets how many of what were checked so far, and how many there are; null: nobody knows. */
  readonly onProgress?: OnProgress;
}

/** A run of all checks. */
export class FsckRun {
  readonly context: AppContext;
  readonly fixes: boolean;
  readonly sample: number | null;
  readonly report: FsckReport;
  readonly #onProgress: OnProgress;

  constructor(context: AppContext, { fixes, onProgress = () => {}, report = new FsckReport(), sample }: FsckOptions) {
    this.context = context;
    this.fixes = fixes;
    this.sample = sample;
    this.report = report;
    this.#onProgress = onProgress;
  }

  /** Counts what was checked. `totalOf`: about how many there are, if so many were checked. */
  step(what: string, by = 1, totalOf: (count: number) => number | null = () => null): void {
    this.report.count(what, by);
    const count = this.report.checked[what] ?? 0;
    this.#onProgress(what, count, totalOf(count));
  }

  /** Reports how far the check of the audit log is; its events are counted at the end. */
  readonly onAuditProgress = (batches: number, total: number): void =>
    this.#onProgress('batches of the audit log', batches, total);

  /** Runs one check; its failure is a finding, and the others go on. */
  async item(what: string, object: string, check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.report.add('not-checked', `${what} ${object}`.trim(), { detail: (error as Error).message });
    }
  }
}
