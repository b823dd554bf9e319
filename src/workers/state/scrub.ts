import type { EventSegments } from '../../shared/events/event-segments.ts';
import type { BlobStore } from '../../shared/platform/blobs/blob-store.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import type { Metrics } from '../../shared/platform/telemetry/metrics.ts';
import type { PolicyArchives } from '../../shared/policies/policy-archives.ts';
import type { DocumentCheckRepository } from '../../shared/state/checkpoints/document-check-repository.ts';
import type { CheckOutcome, DocumentReader } from '../../shared/state/checkpoints/document-reader.ts';
import type { JournalSnapshots } from '../../shared/state/journal/journal-snapshots.ts';
import { assertStoreReachable } from '../platform/store-reachable.ts';

const claimLimit = 20;
/** Longer than a batch takes. Documents claimed by a dead process are due again after this time. */
const claimSeconds = 3600;
/** Per document, for the fixed cost of its statements. */
const minChargeBytes = 4 * 1024;

/** Least recently checked first. Safe on any number of replicas. */
export class Scrubber {
  readonly #blobs: Pick<BlobStore, 'check'>;
  readonly #checks: DocumentCheckRepository;
  readonly #journalSnapshots: JournalSnapshots;
  readonly #eventSegments: EventSegments;
  readonly #policyArchives: PolicyArchives;
  readonly #documentReader: DocumentReader;
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #bytesPerSecond: number;
  readonly #burstMs: number;
  readonly #periodSeconds: number;
  /** In stored bytes; negative after a document larger than the allowance. */
  #allowance = 0;

  constructor(
    parts: {
      blobs: Pick<BlobStore, 'check'>;
      documentChecks: DocumentCheckRepository;
      journalSnapshots: JournalSnapshots;
      eventSegments: EventSegments;
      policyArchives: PolicyArchives;
      documentReader: DocumentReader;
      logger: Logger;
      metrics: Metrics;
    },
    /** A run reads at most `burstMs` at this rate. */
    pace: { bytesPerSecond: number; periodSeconds: number; burstMs?: number },
  ) {
    this.#blobs = parts.blobs;
    this.#checks = parts.documentChecks;
    this.#journalSnapshots = parts.journalSnapshots;
    this.#eventSegments = parts.eventSegments;
    this.#policyArchives = parts.policyArchives;
    this.#documentReader = parts.documentReader;
    this.#logger = parts.logger;
    this.#metrics = parts.metrics;
    this.#bytesPerSecond = pace.bytesPerSecond;
    this.#burstMs = pace.burstMs ?? Number.POSITIVE_INFINITY;
    this.#periodSeconds = pace.periodSeconds;
  }

  /**
   * A large document is read in one go, and later runs are skipped until it is paid off. Documents that cannot be read are due again in an
   * hour. Stops early if the blob store is unavailable.
   */
  async run(elapsedMs: number, signal?: AbortSignal): Promise<void> {
    // Neither unused allowance nor the time in which the process stood still accumulates.
    const bytesIn = (ms: number): number => (ms * this.#bytesPerSecond) / 1000;
    this.#allowance = Math.min(Math.min(this.#allowance, 0) + bytesIn(elapsedMs), bytesIn(this.#burstMs));
    while (this.#allowance > 0) {
      const claimed = [
        ...(await this.#claimSnapshots()),
        ...(await this.#claimSegments()),
        ...(await this.#claimArchives()),
        ...(await this.#claimCheckpoints()),
      ];
      if (claimed.length === 0) return;
      for (const work of claimed) {
        if (signal?.aborted || !(await this.#check(work, signal))) return;
      }
    }
  }

  async #claimSnapshots(): Promise<Claimed[]> {
    const rows = await this.#journalSnapshots.claimChecks(this.#periodSeconds, claimSeconds, 1);
    return rows.map(({ updateId, sizeBytes }) => ({
      facts: { updateId },
      bytes: sizeBytes,
      run: (signal) => this.#journalSnapshots.check(updateId, signal),
    }));
  }

  async #claimSegments(): Promise<Claimed[]> {
    const rows = await this.#eventSegments.claimChecks({ periodSeconds: this.#periodSeconds, claimSeconds, limit: 1 });
    return rows.map(({ id, storedBytes }) => ({
      facts: { segmentId: id },
      bytes: storedBytes,
      run: (signal) => this.#eventSegments.check(id, signal),
    }));
  }

  async #claimArchives(): Promise<Claimed[]> {
    const rows = await this.#policyArchives.claimChecks({ periodSeconds: this.#periodSeconds, claimSeconds, limit: 1 });
    return rows.map(({ id, storedBytes }) => ({
      facts: { policyArchiveId: id },
      bytes: storedBytes,
      run: (signal) => this.#policyArchives.check(id, signal),
    }));
  }

  async #claimCheckpoints(): Promise<Claimed[]> {
    const rows = await this.#checks.claim({
      periodSeconds: this.#periodSeconds,
      bytes: Math.ceil(this.#allowance),
      limit: claimLimit,
      claimSeconds,
    });
    return rows.map(({ id, bytes }) => ({
      facts: { checkpointId: id },
      bytes,
      run: (signal) => this.#documentReader.check(id, signal),
    }));
  }

  /** Returns false if this run should stop. */
  async #check({ facts, bytes, run }: Claimed, signal: AbortSignal | undefined): Promise<boolean> {
    this.#allowance -= Math.max(bytes, minChargeBytes);
    try {
      this.#metrics.documentsChecked.labels(await run(signal)).inc();
      return true;
    } catch (error) {
      if (signal?.aborted) return false;
      this.#metrics.documentsChecked.labels('failed').inc();
      this.#metrics.tasksPostponed.labels('scrub').inc();
      this.#logger.warn({ ...facts, err: error }, 'scrub: document could not be read');
      return assertStoreReachable(this.#blobs, error).then(
        () => true,
        () => false,
      );
    }
  }
}

interface Claimed {
  readonly facts: Readonly<Record<string, string>>;
  /** Bytes charged for reading it. */
  readonly bytes: number;
  readonly run: (signal: AbortSignal | undefined) => Promise<CheckOutcome>;
}
