import type { AppContext } from '../../shared/context.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { FsckReport } from './finding.ts';

type OnProgress = (what: string, count: number, total: number | null) => void;

export interface FsckOptions {
  readonly fixes: boolean;
  /** Documents of each kind, and heads; null: all. */
  readonly sample: number | null;
  /** Null: keys are not checked. */
  readonly ring: KeyRing | null;
  readonly report?: FsckReport;
  /** Receives the kind and number of checked items, and their total; null: unknown. */
  readonly onProgress?: OnProgress;
}

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

  /** `totalOf` estimates the total from the number of checked items. */
  step(what: string, by = 1, totalOf: (count: number) => number | null = () => null): void {
    this.report.count(what, by);
    const count = this.report.checked[what] ?? 0;
    this.#onProgress(what, count, totalOf(count));
  }

  /** Reports the progress of the audit log's check, whose events are counted at the end. */
  readonly onAuditProgress = (batches: number, total: number): void =>
    this.#onProgress('batches of the audit log', batches, total);

  /** A failure is a finding, and the other checks continue. */
  async item(what: string, object: string, check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (error) {
      this.report.add('not-checked', `${what} ${object}`.trim(), { detail: (error as Error).message });
    }
  }
}
