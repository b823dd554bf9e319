import { createHash } from 'node:crypto';
import type { CheckpointRepository } from '../checkpoints/checkpoint-repository.ts';
import type { DocumentStore } from '../checkpoints/document-store.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import type { FoldPointRepository } from './fold-point-repository.ts';
import type { JournalRepository } from './journal-repository.ts';
import { isShortReplay, type OpenReplay, type ReplayRunner, replayHere, UnsoundJournalError } from './replay-runner.ts';
import type { ReplayedText, ReplayProgress } from './replay-work.ts';
import type { ManifestSource } from './write-document.ts';

const attempts = 10;

interface CaughtUp {
  readonly replay: OpenReplay;
  readonly progress: ReplayProgress;
}

/**
 * Turns an update's base and journal into a checkpoint, going on from the last fold point when there is one. Two folds at
 * once are harmless: one commits, the other looks again.
 */
export class JournalFolder {
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #journal: JournalRepository;
  readonly #points: FoldPointRepository;
  readonly #largeReplays: ReplayRunner;

  constructor(parts: {
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    journal: JournalRepository;
    foldPoints: FoldPointRepository;
    /** For replays that would hold up this thread. */
    largeReplays: ReplayRunner;
  }) {
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#journal = parts.journal;
    this.#points = parts.foldPoints;
    this.#largeReplays = parts.largeReplays;
  }

  /**
   * Folds until the update's checkpoint holds all entries that were there at the call. Of an ended update the journal is
   * deleted with that, once the checkpoint was read back. Throws UnsoundJournalError while the update runs; of an ended one
   * the fault is recorded instead, and the state stays at its checkpoint.
   */
  async fold(updateId: string): Promise<void> {
    let goal: number | null = null;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const update = await this.#updates.find(updateId);
      if (!update) return;
      goal ??= update.entryCount;
      if (update.foldedEntries >= goal) {
        if (!isActive(update.status) && !update.hasTail) await this.#deleteJournal(update);
        return;
      }
      try {
        await this.#commitFold(update);
      } catch (error) {
        if (!(error instanceof UnsoundJournalError) || isActive(update.status)) throw error;
        await this.#updates.setFoldError(updateId, error.message);
        return;
      }
    }
    throw new UnavailableError('Others keep changing the update while its journal is folded; please repeat the call');
  }

  /** Stores a fold point, unless entries are missing in between: one that comes late could not be put in its place then. */
  async advance(updateId: string): Promise<void> {
    const update = await this.#updates.find(updateId);
    if (!update || !isActive(update.status)) return;
    await this.#caughtUp(update, async ({ replay, progress }) => {
      if (progress.hasGap) return;
      const place = await this.#documents.saveEncoded(await replay.snapshot());
      await this.#points.upsert(updateId, progress.entries, place);
    });
  }

  /**
   * Base and entries as one document, without storing it; null when they were folded and deleted meanwhile.
   * Throws UnsoundJournalError.
   */
  replay(update: UpdateRow): Promise<ReplayedText | null> {
    return this.#caughtUp(update, async ({ replay }) => replay.write(await this.#manifest(update.id)));
  }

  async #commitFold(update: UpdateRow): Promise<void> {
    await this.#caughtUp(update, async ({ replay, progress }) => {
      const { document, resourceCount } = await replay.encode(await this.#manifest(update.id));
      await this.#checkpoints.commitFold(
        {
          updateId: update.id,
          stackId: update.stackId,
          foundCheckpointId: update.checkpointId,
          foldedEntries: progress.entries,
        },
        { document: await this.#documents.saveEncoded(document), resourceCount },
      );
    });
  }

  async #manifest(updateId: string): Promise<ManifestSource> {
    return { time: new Date().toISOString(), version: await this.#updates.findClientVersion(updateId) };
  }

  /** Does `work` where all entries have been applied; null when they were folded and deleted meanwhile. */
  async #caughtUp<T>(update: UpdateRow, work: (caughtUp: CaughtUp) => Promise<T>): Promise<T | null> {
    const [base, point] = await Promise.all([
      update.baseCheckpointId ? this.#checkpoints.find(update.baseCheckpointId) : null,
      this.#points.find(update.id),
    ]);
    if (update.baseCheckpointId && !base) return null;
    // Without gaps, as a fold point is, the last sequenceID is the number of entries.
    const expected = point?.entries ?? 0;
    const [baseBytes, pointBytes, firstPage] = await Promise.all([
      base && this.#documents.readEncoded(base),
      point && this.#documents.readEncoded(point),
      this.#journal.readPage(update.id, expected),
    ]);
    const size = {
      entries: firstPage.isLast ? firstPage.lengths.length : Number.POSITIVE_INFINITY,
      bytes: (base?.sizeBytes ?? 0) + (point?.sizeBytes ?? 0) + firstPage.text.byteLength,
    };
    const replay = await (isShortReplay(size) ? replayHere : this.#largeReplays).open({
      base: baseBytes,
      point: point && pointBytes && { bytes: pointBytes, entries: point.entries },
    });
    try {
      let progress = replay.begun;
      let page =
        progress.lastSequenceId === expected
          ? firstPage
          : await this.#journal.readPage(update.id, progress.lastSequenceId);
      while (page.lengths.length > 0) {
        const { isLast } = page;
        const next = isLast ? null : this.#journal.readPage(update.id, page.sequenceIds.at(-1) as number);
        // Read ahead while this page is applied.
        const [applied, nextPage] = await Promise.all([replay.apply(page), next]);
        progress = applied;
        if (!nextPage) break;
        page = nextPage;
      }
      // Fewer than the update counted: another fold has committed them meanwhile, and the journal was deleted.
      return progress.entries < update.entryCount ? null : await work({ replay, progress });
    } finally {
      replay.close();
    }
  }

  async #deleteJournal(update: UpdateRow): Promise<void> {
    if (update.entryCount === 0 || update.foldError !== null) return;
    const checkpoint = update.checkpointId ? await this.#checkpoints.find(update.checkpointId) : null;
    if (checkpoint) {
      const hash = createHash('sha256');
      for await (const chunk of this.#documents.open(checkpoint)) hash.update(chunk);
      if (!hash.digest().equals(checkpoint.sha256)) {
        throw new Error(
          `Checkpoint ${checkpoint.id} does not read back as written; the journal of update ${update.id} is kept`,
        );
      }
    }
    await this.#journal.deleteFolded(update.id);
  }
}
