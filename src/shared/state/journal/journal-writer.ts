import type { WriteBody } from '../../platform/payloads/body-buffer.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { LeaseFence } from '../../updates/fence.ts';
import { LeaseLostError } from '../../updates/lease-loss.ts';
import type { RollbackState } from '../../updates/rollback-detection/rollback-state.ts';
import { appendLimited, BeginRefusedError, type LimitParts } from './change-limits/limited-append.ts';
import type { JournalBacklog } from './incremental/journal-backlog.ts';
import { type BatchEntry, isLimitable, splitJournalBatch } from './journal-batch.ts';
import type { Appended, JournalRepository } from './journal-repository.ts';

const snapshotGrowth = 1.25;

/** The work that is due after a batch. */
export interface DueWork {
  readonly snapshotDue: boolean;
  readonly incrementalDue: boolean;
}

interface Services {
  readonly journalWriter: JournalWriter;
  readonly requestSnapshot: (updateId: string) => Promise<void>;
  readonly requestIncremental: (updateId: string) => Promise<void>;
}

export const appendJournal = {
  name: 'append-journal',
  schemas: [1],
  fields: { fence: LeaseFence },
  label: () => 'journal',
  budget: 'writes',
  run: async (services: Services, { fence }: { readonly fence: LeaseFence }, body: WriteBody) => {
    const { journalWriter, requestIncremental, requestSnapshot } = services;
    const { snapshotDue, incrementalDue } = await body.use((entries) => journalWriter.append(fence, entries));
    // Separate jobs: if one fails, the entries stay committed, and the call does not wait for the jobs.
    if (snapshotDue) await requestSnapshot(fence.updateId);
    else if (incrementalDue) await requestIncremental(fence.updateId);
  },
} as const;

/** Splits batches without parsing the entries. */
export class JournalWriter {
  readonly #changeLimits: LimitParts;
  readonly #rollbackState: Pick<RollbackState, 'beginWrite'>;
  readonly #journal: JournalRepository;
  readonly #backlog: JournalBacklog;
  readonly #snapshotEntries: number;
  readonly #metrics: Metrics;

  constructor(parts: {
    changeLimits: LimitParts;
    rollbackState: Pick<RollbackState, 'beginWrite'>;
    journal: JournalRepository;
    backlog: JournalBacklog;
    snapshotEntries: number;
    metrics: Metrics;
  }) {
    this.#changeLimits = parts.changeLimits;
    this.#rollbackState = parts.rollbackState;
    this.#journal = parts.journal;
    this.#backlog = parts.backlog;
    this.#snapshotEntries = parts.snapshotEntries;
    this.#metrics = parts.metrics;
  }

  /**
   * Resolves once all entries of the batch (an inflated PATCH body) are committed. Entries that already exist are kept. Throws
   * InvalidJournalBatchError, PayloadTooLargeError and LeaseLostError without a change. Throws BeginRefusedError if the update may begin
   * none of the batch's operations; everything else in the batch is then committed.
   */
  async append(fence: LeaseFence, body: Buffer): Promise<DueWork> {
    const entries = await splitJournalBatch(body);
    const noteWrite = this.#rollbackState.beginWrite();
    const appended =
      (await this.#journal.append(fence, entries)) ?? (await this.#appendLimited(fence, entries, noteWrite));
    noteWrite(appended.position);
    return this.#note(fence, appended, body.length);
  }

  async #appendLimited(
    fence: LeaseFence,
    entries: readonly BatchEntry[],
    noteWrite: (position: number | null) => void,
  ): Promise<Appended> {
    const limited = entries.some(isLimitable) ? await appendLimited(this.#changeLimits, fence, entries) : null;
    if (!limited) throw new LeaseLostError();
    const { appended, refusal } = limited;
    if (!refusal) return appended;
    noteWrite(appended.position);
    this.#metrics.batchesRefused.labels(refusal.reason).inc();
    throw new BeginRefusedError(refusal.message);
  }

  #note(fence: LeaseFence, { added, entryCount }: Appended, bytes: number): DueWork {
    const incrementalDue = added > 0 && this.#backlog.add(fence.updateId, added, bytes);
    return { snapshotDue: isSnapshotDue(this.#snapshotEntries, entryCount, added), incrementalDue };
  }
}

/**
 * Snapshots are due every `step` entries and, in a long journal, whenever it has grown by a quarter. This limits both the replay at the end
 * and the cost of the snapshots, each of which contains all changes since the update began.
 */
export function isSnapshotDue(step: number, entryCount: number, added: number): boolean {
  return snapshotsWithin(step, entryCount) > snapshotsWithin(step, entryCount - added);
}

function snapshotsWithin(step: number, entryCount: number): number {
  // Above this count, a quarter of the journal is more than the fixed step.
  const linearLimit = step / (snapshotGrowth - 1);
  const geometricSteps = Math.log(Math.max(entryCount / linearLimit, 1)) / Math.log(snapshotGrowth);
  return Math.floor(Math.min(entryCount, linearLimit) / step) + Math.floor(geometricSteps);
}
