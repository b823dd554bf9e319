import type { BlobStore } from '../platform/blobs/blob-store.ts';
import type { Config } from '../platform/config/config.ts';
import type { Database } from '../platform/db/database.ts';
import type { Lifecycle } from '../platform/lifecycle/lifecycle.ts';
import type { Logger } from '../platform/logger/logger.ts';
import { BodyBuffer } from '../platform/payloads/body-buffer.ts';
import { ByteBudget } from '../platform/payloads/byte-budget.ts';
import type { ReadOnlyMode } from '../platform/read-only/read-only-mode.ts';
import type { DataKeys } from '../secrets/data-keys.ts';
import type { StackRepository } from '../stacks/stack-repository.ts';
import type { RollbackState } from '../updates/rollback-detection/rollback-state.ts';
import type { UpdateRepository } from '../updates/update-repository.ts';
import { createBlobRepository } from './checkpoints/blob-repository.ts';
import { createCheckpointRepository } from './checkpoints/checkpoint-repository.ts';
import { CheckpointWriter } from './checkpoints/checkpoint-writer.ts';
import { createChunkRepository } from './checkpoints/chunks/chunk-repository.ts';
import { createDocumentCheckRepository } from './checkpoints/document-check-repository.ts';
import { type CopySource, DocumentCopies } from './checkpoints/document-copies.ts';
import { DocumentReader } from './checkpoints/document-reader.ts';
import { DocumentRepair, type RebuildState } from './checkpoints/document-repair.ts';
import { DocumentStore } from './checkpoints/document-store.ts';
import { DeploymentImporter } from './deployment-importer.ts';
import { StateEdits } from './edits/state-edits.ts';
import { createCompactionRepository } from './journal/compaction-repository.ts';
import { IncrementalCompaction } from './journal/incremental/incremental-compaction.ts';
import { OpenReplays } from './journal/incremental/open-replays.ts';
import { JournalCompactor } from './journal/journal-compactor.ts';
import { createJournalRepository } from './journal/journal-repository.ts';
import { createJournalSnapshotRepository } from './journal/journal-snapshot-repository.ts';
import { JournalSnapshots } from './journal/journal-snapshots.ts';
import type { ReplayRunner } from './journal/replay/runner/replay-runner.ts';
import { ThreadedReplayRunner } from './journal/replay/runner/threaded-replay-runner.ts';
import { StackRenamer } from './stack-renamer.ts';
import { StateReader } from './state-reader.ts';

export type StateParts = Readonly<ReturnType<typeof createStateParts>>;

/** A caller, e.g. a test, may provide these parts itself. */
export interface StateOverrides {
  readonly largeReplays?: ReplayRunner;
  readonly openReplays?: OpenReplays;
}

interface Foundation {
  readonly config: Config;
  readonly db: Database;
  readonly lifecycle: Lifecycle;
  readonly logger: Logger;
  readonly blobs: BlobStore;
  /** All stores that may have a blob. */
  readonly sources: () => Promise<readonly CopySource[]>;
  /** For a blob that is wrong in one of the stores. */
  readonly repairLater: (key: string) => Promise<unknown>;
  readonly dataKeys: DataKeys;
  readonly stacks: StackRepository;
  readonly updates: UpdateRepository;
  readonly rollbackState: RollbackState;
  readonly readOnly: ReadOnlyMode;
}

/** `lifecycle` closes the parts. */
export function createStateParts(
  {
    blobs,
    config,
    dataKeys,
    repairLater,
    readOnly,
    rollbackState,
    db,
    lifecycle,
    logger,
    sources,
    stacks,
    updates,
  }: Foundation,
  overrides: StateOverrides,
) {
  const {
    bufferedBodyBytes: maxBufferedBytes,
    inlineBytes,
    maxBatchBytes,
    maxBodyBytes,
    openReplayBytes,
  } = config.limits;
  const checkpoints = createCheckpointRepository(db);
  const blobRows = createBlobRepository(db);
  const journal = createJournalRepository(db);
  const compactions = createCompactionRepository(db);
  const chunks = createChunkRepository(db);
  const encryption = { isOn: config.encryption.encryptsDocuments, keys: dataKeys };
  const documentsOver = (store: Pick<BlobStore, 'open' | 'put'>): DocumentStore =>
    new DocumentStore(store, { blobs: blobRows, chunks }, inlineBytes, encryption);
  const copies = new DocumentCopies({
    blobs,
    blobRows,
    chunks,
    documentsOver,
    logger,
    sources,
    repairLater,
    isFenced: () => readOnly.isFenced,
  });
  const documents = documentsOver({
    open: (...blob) => copies.open(...blob),
    put: (...blob) => blobs.put(...blob),
  });
  const documentChecks = createDocumentCheckRepository(db);
  const journalSnapshots = new JournalSnapshots({
    rows: createJournalSnapshotRepository(db),
    documents,
    copies,
    readOnly,
    logger,
  });
  // The compactor needs the reader. The reader calls the compactor only after it found a damaged document.
  const rebuild: RebuildState = (updateId, damagedId) => compactor.rebuild(updateId, damagedId);
  const repair = new DocumentRepair({ documentChecks, checkpoints, documents, chunks, rebuild, logger });
  const documentReader = new DocumentReader({
    documentChecks,
    checkpoints,
    documents,
    copies,
    repair,
    readOnly,
    logger,
  });
  const replayThread = new ThreadedReplayRunner();
  lifecycle.onClose('stores', 'replay thread', () => replayThread.close());
  const openReplays = overrides.openReplays ?? new OpenReplays({ maxBytes: openReplayBytes });
  lifecycle.onClose('queues', 'open replays', async () => openReplays.close());
  const compactor: JournalCompactor = new JournalCompactor({
    updates,
    checkpoints,
    documents,
    copies,
    documentReader,
    journal,
    journalSnapshots,
    compactions,
    largeReplays: overrides.largeReplays ?? replayThread,
    openReplays,
    graceSeconds: config.journalGraceSeconds,
    readOnly,
    logger,
  });
  const incrementalCompaction = new IncrementalCompaction((updateId) => compactor.advance(updateId), logger);
  lifecycle.onClose('work', 'incremental compaction', () => incrementalCompaction.close());
  const stateEdits = new StateEdits(db, config.jobs.waitSeconds);
  const bufferedBodyBytes = new ByteBudget(maxBufferedBytes);
  const bodyBuffer = new BodyBuffer(
    Math.min(maxBatchBytes, maxBodyBytes),
    bufferedBodyBytes,
    // Received bodies are smaller than decompressed ones.
    Math.ceil(maxBufferedBytes / 2),
  );
  return {
    checkpoints,
    blobRows,
    chunks,
    copies,
    journal,
    compactions,
    documents,
    documentsOver,
    documentChecks,
    journalSnapshots,
    documentReader,
    openReplays,
    compactor,
    incrementalCompaction,
    stateEdits,
    bufferedBodyBytes,
    bodyBuffer,
    states: new StateReader({
      ...{ stacks, updates, checkpoints, documentReader, compactor, compactions },
      compactLarge: (updateId) => compactor.compact(updateId),
      replica: null,
    }),
    writer: new CheckpointWriter({
      ...{ updates, checkpoints, rollbackState, documents, documentReader, bodyBuffer, maxBodyBytes },
    }),
    importer: new DeploymentImporter({ stateEdits, documents, maxBodyBytes }),
    renamer: new StackRenamer({ stateEdits, checkpoints, documents, documentReader }),
  };
}
