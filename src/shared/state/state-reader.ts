import { once } from '../platform/blobs/blob-streams.ts';
import type { Replica } from '../platform/db/replica/replica.ts';
import type { Queryable } from '../platform/db/sql.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import type { StackRef } from '../stacks/names.ts';
import { createStackRepository, type StackRepository, type StackRow } from '../stacks/stack-repository.ts';
import { createUpdateRepository, type UpdateRepository, type UpdateRow } from '../updates/update-repository.ts';
import { isActive } from '../updates/update-state.ts';
import { type CheckpointRepository, createCheckpointRepository } from './checkpoints/checkpoint-repository.ts';
import { type ChunkRepository, createChunkRepository } from './checkpoints/chunks/chunk-repository.ts';
import { wholeLimitBytes } from './checkpoints/document-codec.ts';
import type { DocumentReader } from './checkpoints/document-reader.ts';
import { DocumentMissingError } from './checkpoints/document-store.ts';
import { resume, whenEnded } from './checkpoints/opened-bytes.ts';
import { type CompactionRepository, createCompactionRepository } from './journal/compaction-repository.ts';
import type { JournalCompactor } from './journal/journal-compactor.ts';
import { describeFault, type JournalFault } from './journal/journal-fault.ts';
import { InvalidJournalError, isShortReplay } from './journal/replay/runner/replay-runner.ts';
import { StateDeletedError } from './retention/deleted-errors.ts';

/** As in `application/vnd.service+8`: `resources` is null and there is no manifest. */
const emptyDocument = Buffer.from('{"version":3,"deployment":{"resources":null}}');

/** A superseded checkpoint can be deleted between finding and opening it. The head has then moved, and the read is retried. */
const attempts = 5;

export interface StateDocument {
  readonly sizeBytes: number;
  /** Null if the document is not stored. */
  readonly storedBytes: number | null;
  /** Must be read or returned once. A blob stays open until then. */
  readonly bytes: AsyncIterable<Buffer>;
  readonly resourceCount: number;
  /** Null if the document is empty or replayed on demand. */
  readonly checkpointId: string | null;
  /** Describes journal entries that are missing from the document. */
  readonly warning: string | null;
}

/** Waits until the blob of a large document may be opened. Returns a function to call once the blob is closed. */
export type AdmitBlob = () => Promise<() => void>;

/** All rows of one attempt come from the same server. */
interface Rows {
  readonly stacks: StackRepository;
  readonly updates: UpdateRepository;
  readonly checkpoints: CheckpointRepository;
  readonly compactions: CompactionRepository;
  /** Null to use the document store's own rows. */
  readonly chunks: ChunkRepository | null;
}

/**
 * Always includes pending journal entries. Reading a damaged document throws DocumentDamagedError, at the latest in place of its last
 * chunk.
 */
export class StateReader {
  readonly #rows: Rows;
  readonly #replica: Replica | null;
  readonly #documentReader: DocumentReader;
  readonly #compactor: JournalCompactor;
  readonly #compactLarge: (updateId: string, organization?: string) => Promise<void>;

  constructor(parts: {
    stacks: StackRepository;
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documentReader: DocumentReader;
    compactor: JournalCompactor;
    compactions: CompactionRepository;
    /** Compacts a large journal. In the API, a worker does this, so that the process is not blocked. */
    compactLarge: (updateId: string, organization?: string) => Promise<void>;
    /** Serves stored data; entries that are not compacted yet are always read from the primary. Null where decisions depend on the read. */
    replica: Replica | null;
  }) {
    const { stacks, updates, checkpoints, compactions } = parts;
    this.#rows = { stacks, updates, checkpoints, compactions, chunks: null };
    this.#replica = parts.replica;
    this.#documentReader = parts.documentReader;
    this.#compactor = parts.compactor;
    this.#compactLarge = parts.compactLarge;
  }

  /** Also throws the errors of `admit`. */
  readHead(ref: StackRef, admit?: AdmitBlob): Promise<{ stack: StackRow; state: StateDocument } | null> {
    return this.#retryWhileMoving(async (rows) => {
      const stack = await rows.stacks.findHead(ref);
      if (!stack) return null;
      if (stack.pendingUpdateId !== null && rows !== this.#rows) return 'moved';
      const pending = stack.pendingUpdateId === null ? null : await rows.updates.find(stack.pendingUpdateId);
      if (stack.pendingUpdateId !== null && !pending?.hasPendingEntries) return 'moved';
      const state = pending
        ? await this.#replay(pending, ref.organization, admit)
        : await this.#open(rows, stack.checkpointId, admit);
      if (state === 'moved' || !stack.hasFaults) return state === 'moved' ? state : { stack, state };
      const faults = await rows.compactions.findFaults(stack.id).catch(async (error: unknown) => {
        await state.bytes[Symbol.asyncIterator]().return?.();
        throw error;
      });
      return { stack, state: { ...state, warning: faults.map(describeFault).join(' ') || state.warning } };
    });
  }

  /** Throws StateDeletedError if retention has deleted the state, and the errors of `admit`. */
  readVersion(
    stackId: string,
    stackVersion: number,
    organization?: string,
    admit?: AdmitBlob,
  ): Promise<StateDocument | null> {
    return this.#retryWhileMoving(async (rows) => {
      const update = await rows.updates.findByVersion(stackId, stackVersion);
      if (!update) return null;
      if (update.isStateDeleted) throw new StateDeletedError(stackVersion);
      if (update.hasPendingEntries) return rows === this.#rows ? this.#replay(update, organization, admit) : 'moved';
      return this.#openCompacted(rows, update, admit);
    });
  }

  /** Only the first attempt reads from a replica. Throws UnavailableError if all attempts fail. */
  async #retryWhileMoving<T>(read: (rows: Rows) => Promise<T | 'moved'>): Promise<T> {
    const replica = await this.#replica?.begin();
    let missing: DocumentMissingError | null = null;
    for (let attempt = replica ? 0 : 1; attempt <= attempts; attempt++) {
      try {
        const result = await read(replica && attempt === 0 ? rowsOf(replica) : this.#rows);
        if (result !== 'moved') return result;
      } catch (error) {
        if (!(error instanceof DocumentMissingError)) throw error;
        missing = error;
      }
    }
    throw (
      missing ??
      new UnavailableError('The state changes too quickly to be read; please retry', { retryAfterSeconds: 1 })
    );
  }

  /** Replays a short journal over a small state on demand. Otherwise, a worker first compacts the journal into a checkpoint. */
  async #replay(
    update: UpdateRow,
    organization: string | undefined,
    admit?: AdmitBlob,
  ): Promise<StateDocument | 'moved'> {
    const base = update.baseCheckpointId ? await this.#rows.checkpoints.find(update.baseCheckpointId) : null;
    if (!isShortReplay({ entries: update.entryCount, bytes: base?.sizeBytes ?? 0 })) {
      await this.#compactLarge(update.id, organization);
      const compacted = await this.#rows.updates.find(update.id);
      return compacted ? this.#openCompacted(this.#rows, compacted, admit) : 'moved';
    }
    const replayed = await this.#compactor.replay(update).catch(async (error: unknown) => {
      if (!(error instanceof InvalidJournalError) || isActive(update.status)) throw error;
      // The longest valid prefix becomes the state of an ended update. The next attempt reads this state.
      await this.#compactor.compact(update.id);
      return null;
    });
    if (!replayed) return 'moved';
    const { buffer, byteOffset, byteLength } = replayed.document;
    return {
      sizeBytes: byteLength,
      storedBytes: null,
      bytes: once(Buffer.from(buffer, byteOffset, byteLength)),
      resourceCount: replayed.resourceCount,
      checkpointId: null,
      warning: describeWarnings(update, replayed.warning),
    };
  }

  /** Warns if the compaction skipped entries. */
  async #openCompacted(rows: Rows, update: UpdateRow, admit?: AdmitBlob): Promise<StateDocument | 'moved'> {
    const state = await this.#open(rows, update.checkpointId, admit);
    const isFaulty = update.compactionError !== null || update.compactionWarning !== null;
    return state === 'moved' || !isFaulty ? state : { ...state, warning: describeFault(asFault(update)) };
  }

  async #open(rows: Rows, checkpointId: string | null, admit?: AdmitBlob): Promise<StateDocument | 'moved'> {
    if (checkpointId === null) {
      return {
        sizeBytes: emptyDocument.length,
        storedBytes: null,
        bytes: once(emptyDocument),
        resourceCount: 0,
        checkpointId,
        warning: null,
      };
    }
    const checkpoint = await rows.checkpoints.find(checkpointId);
    if (!checkpoint) return 'moved';
    // All other documents are read from rows, or blob by blob into memory.
    const isBlob = checkpoint.blobKey !== null && checkpoint.sizeBytes > wholeLimitBytes;
    const end = isBlob && admit ? await admit() : null;
    const bytes = whenEnded(this.#documentReader.open(checkpoint, rows.chunks ?? undefined), end);
    // Reads the first chunk here, so that a retry can handle a deleted blob, and an error response a damaged one. A small document is fully
    // verified at this point.
    const first = await bytes.next();
    return {
      sizeBytes: checkpoint.sizeBytes,
      storedBytes: checkpoint.storedBytes,
      resourceCount: checkpoint.resourceCount,
      checkpointId,
      bytes: resume(first, bytes),
      warning: null,
    };
  }
}

function rowsOf(db: Queryable): Rows {
  return {
    stacks: createStackRepository(db),
    updates: createUpdateRepository(db),
    checkpoints: createCheckpointRepository(db),
    compactions: createCompactionRepository(db),
    chunks: createChunkRepository(db),
  };
}

function describeWarnings(update: UpdateRow, warning: string | null): string | null {
  const warnings = [update.compactionWarning, warning].filter((each) => each !== null);
  if (warnings.length === 0) return null;
  return describeFault({
    ...asFault(update),
    compactionError: null,
    compactionWarning: [...new Set(warnings)].join('; '),
  });
}

function asFault({ id, ...update }: UpdateRow): JournalFault {
  return { updateId: id, ...update };
}
