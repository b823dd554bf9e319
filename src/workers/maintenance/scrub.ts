import type { DocumentCheckRepository } from '../../shared/checkpoints/document-check-repository.ts';
import type { CheckOutcome, DocumentGuard } from '../../shared/checkpoints/document-guard.ts';
import type { FoldPointRepository } from '../../shared/journal/fold-point-repository.ts';
import { BlobStoreUnavailableError } from '../../shared/platform/blobs/blob-store.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';

/** Documents claimed by one statement. */
const claimLimit = 20;
/** Longer than a batch takes; after it, what a process that died had claimed is due again. */
const claimSeconds = 3600;
/** What a document counts for at least: statements cost something too. */
const leastBytes = 4 * 1024;

/** Reads stored documents back, longest unread first, no faster than a set rate. Safe on any number of replicas. */
export class Scrubber {
  readonly #checks: DocumentCheckRepository;
  readonly #foldPoints: FoldPointRepository;
  readonly #guard: DocumentGuard;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #bytesPerSecond: number;
  readonly #periodSeconds: number;
  /** Stored bytes that may be read now; below 0 after a document that was larger. */
  #allowance = 0;

  constructor(
    parts: {
      documentChecks: DocumentCheckRepository;
      foldPoints: FoldPointRepository;
      guard: DocumentGuard;
      logger: Logger;
      metrics: Metrics;
    },
    pace: { bytesPerSecond: number; periodSeconds: number },
  ) {
    this.#checks = parts.documentChecks;
    this.#foldPoints = parts.foldPoints;
    this.#guard = parts.guard;
    this.#logger = parts.logger;
    this.#metrics = parts.metrics;
    this.#bytesPerSecond = pace.bytesPerSecond;
    this.#periodSeconds = pace.periodSeconds;
  }

  /**
   * Reads what is due, as much as the time since the last run allows; a large document is read at once, and the runs after it
   * are left out. What could not be read is due again in an hour. Ends early when the blob store is away or `signal` fires.
   */
  async run(elapsedMs: number, signal?: AbortSignal): Promise<void> {
    // Time in which nothing was due is not saved up.
    this.#allowance = Math.min(this.#allowance, 0) + (elapsedMs * this.#bytesPerSecond) / 1000;
    while (this.#allowance > 0) {
      const [points, checkpoints] = [await this.#claimFoldPoints(), await this.#claimCheckpoints()];
      if (points.length + checkpoints.length === 0) return;
      for (const work of [...points, ...checkpoints]) {
        if (signal?.aborted || !(await this.#check(work, signal))) return;
      }
    }
  }

  async #claimFoldPoints(): Promise<Claimed[]> {
    const rows = await this.#foldPoints.claimChecks(this.#periodSeconds, claimSeconds, 1);
    return rows.map(({ updateId, sizeBytes }) => ({
      facts: { updateId },
      bytes: sizeBytes,
      run: (signal) => this.#guard.checkFoldPoint(updateId, signal),
    }));
  }

  async #claimCheckpoints(): Promise<Claimed[]> {
    const rows = await this.#checks.claim({
      periodSeconds: this.#periodSeconds,
      bytes: Math.ceil(this.#allowance),
      limit: claimLimit,
      claimSeconds,
    });
    return rows.map(({ id, storedBytes }) => ({
      facts: { checkpointId: id },
      bytes: storedBytes,
      run: (signal) => this.#guard.check(id, signal),
    }));
  }

  /** False when nothing more should be tried in this run. */
  async #check({ facts, bytes, run }: Claimed, signal: AbortSignal | undefined): Promise<boolean> {
    this.#allowance -= Math.max(bytes, leastBytes);
    try {
      this.#metrics.documentsChecked.labels(await run(signal)).inc();
      return true;
    } catch (error) {
      if (signal?.aborted) return false;
      this.#metrics.documentsChecked.labels('failed').inc();
      this.#logger.warn({ ...facts, err: error }, 'scrub: document could not be read');
      return !(error instanceof BlobStoreUnavailableError);
    }
  }
}

/** A document that nobody else checks at present. */
interface Claimed {
  readonly facts: Readonly<Record<string, string>>;
  /** What reading it takes. */
  readonly bytes: number;
  readonly run: (signal: AbortSignal | undefined) => Promise<CheckOutcome>;
}
