import type { Logger } from '../../platform/logger/logger.ts';
import { clientVersionOf, type UpdateRow } from '../../updates/update-repository.ts';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import type { ClaimedUpdate, CompactionRepository } from './compaction-repository.ts';
import { describeUnknownKinds } from './journal-fault.ts';
import type { JournalReplayer, LongestPrefix, ReplayResult } from './replay/journal-replayer.ts';
import type { ReplayProgress } from './replay/runner/replay-work.ts';

/** The caller must hold the claim on the journal. */
export class CompactionCommitter {
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #compactions: CompactionRepository;
  readonly #replayer: JournalReplayer;
  readonly #logger: Logger;

  constructor(parts: {
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    compactions: CompactionRepository;
    replayer: JournalReplayer;
    logger: Logger;
  }) {
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#compactions = parts.compactions;
    this.#replayer = parts.replayer;
    this.#logger = parts.logger;
  }

  /** Commits all entries of a running update. Throws InvalidJournalError. */
  async commitAll(update: ClaimedUpdate): Promise<boolean> {
    const manifest = { time: new Date().toISOString(), version: clientVersionOf(update.environment) };
    const commit = async ({ replay, progress, fault }: ReplayResult): Promise<string | null> => {
      if (fault) throw fault;
      const { document, resourceCount } = await replay.encode(manifest);
      return this.#checkpoints.commitCompaction(
        { ...compactionOf(update, progress), outcome: { error: null, warning: warningOf(progress), isNew: false } },
        { document: await this.#documents.saveEncoded(document), resourceCount },
      );
    };
    const { document, hasSnapshot, page } = update;
    const checkpointId = await this.#replayer.catchUp(update, commit, { hasSnapshot, found: { base: document, page } });
    return checkpointId !== null;
  }

  /** Commits the longest valid prefix of an ended update's journal and records its fault. */
  async commitPrefix(update: UpdateRow, { progress, replayed, fault }: LongestPrefix): Promise<boolean> {
    const error = fault?.message ?? null;
    const warning = warningOf(progress);
    let committed: boolean;
    if (replayed) {
      const { document, resourceCount } = replayed;
      const checkpointId = await this.#checkpoints.commitCompaction(
        { ...compactionOf(update, progress), outcome: { error, warning, isNew: true } },
        { document: await this.#documents.saveEncoded(document), resourceCount },
      );
      committed = checkpointId !== null;
    } else {
      committed = await this.#compactions.revertToBase({
        ...compactionOf(update, progress),
        error: error ?? 'the journal is empty',
      });
    }
    if (committed) this.#report(update, progress.entries, error, warning);
    return committed;
  }

  #report(
    { id, stackId, stackVersion, entryCount }: UpdateRow,
    entries: number,
    error: string | null,
    warning: string | null,
  ) {
    const details = { updateId: id, stackId, stackVersion, entries, entryCount };
    if (error !== null) {
      this.#logger.error(
        { ...details, reason: error },
        'journal replayed only in part; the stack is blocked until an operator decides',
      );
    }
    if (warning !== null)
      this.#logger.warn({ ...details, reason: warning }, 'journal replayed without entries of unknown kinds');
  }
}

/** Describes what the replay skipped. */
export function warningOf({ unknownKinds }: ReplayProgress): string | null {
  return unknownKinds && describeUnknownKinds(unknownKinds);
}

function compactionOf(update: UpdateRow, progress: ReplayProgress) {
  return {
    updateId: update.id,
    stackId: update.stackId,
    foundCheckpointId: update.checkpointId,
    compactedEntries: progress.entries,
  };
}
