import type { AppContext } from '../../shared/context.ts';
import type { KeyRing } from '../../shared/secrets/key-ring.ts';
import { checkHeads, checkStoredDocuments } from './document-checks.ts';
import { FsckReport } from './finding.ts';
import { checkRows } from './row-checks.ts';
import { checkAllKeys, checkAudit, checkBlobs, checkUsage } from './store-checks.ts';

interface FsckOptions {
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

/**
 * Checks what always holds for database and blob store, beside running servers. Changes nothing unless it `fixes`. No failure of a
 * check stops the others.
 */
export async function fsck(context: AppContext, options: FsckOptions): Promise<FsckReport> {
  const run = new FsckRun(context, options);
  for (const table of ['stacks', 'listings', 'changes', 'updates', 'journals', 'approvals'])
    await run.item('rows of', table, () => checkRows(run, table));
  await run.item('keys', '', () => checkAllKeys(run, options.ring));
  await run.item('blobs', '', () => checkBlobs(run));
  await run.item('documents', '', () => checkStoredDocuments(run));
  await run.item('heads', '', () => checkHeads(run));
  await run.item('audit log', '', () => checkAudit(run));
  await run.item('usage', '', () => checkUsage(run));
  return run.report;
}
