import type { JournalFolder } from '../journal/journal-folder.ts';
import { BlobNotFoundError } from '../platform/blobs/blob-store.ts';
import { UnavailableError } from '../platform/errors/errors.ts';
import type { StackRef } from '../stacks/names.ts';
import type { StackRepository, StackRow } from '../stacks/stack-repository.ts';
import type { UpdateRepository, UpdateRow } from '../updates/update-repository.ts';
import type { CheckpointRepository } from './checkpoint-repository.ts';
import type { DocumentStore } from './document-store.ts';

/** A stack without state, as the contract has it: `resources` null and no manifest. */
export const emptyDocument = Buffer.from('{"version":3,"deployment":{"resources":null}}');

/** A superseded checkpoint can vanish between finding and opening it; then the head has moved and is asked again. */
const attempts = 5;
/** Replays above either limit take more than a few ms, in which a process answers nobody. */
const replayedHereEntries = 500;
const replayedHereBytes = 512 * 1024;

/** A state document, ready to be sent. */
export interface StateDocument {
  readonly sizeBytes: number;
  readonly bytes: AsyncIterable<Buffer>;
  readonly resourceCount: number;
  /** Null: there is no checkpoint behind it (empty, or folded on demand). */
  readonly checkpointId: string | null;
}

/** Reads states: the newest of a stack, and that of any version. Journal entries not yet folded are always included. */
export class StateReader {
  readonly #stacks: StackRepository;
  readonly #updates: UpdateRepository;
  readonly #checkpoints: CheckpointRepository;
  readonly #documents: DocumentStore;
  readonly #folder: JournalFolder;
  readonly #foldLarge: (updateId: string) => Promise<void>;

  constructor(parts: {
    stacks: StackRepository;
    updates: UpdateRepository;
    checkpoints: CheckpointRepository;
    documents: DocumentStore;
    folder: JournalFolder;
    /** Folds where it holds up nobody. */
    foldLarge: (updateId: string) => Promise<void>;
  }) {
    this.#stacks = parts.stacks;
    this.#updates = parts.updates;
    this.#checkpoints = parts.checkpoints;
    this.#documents = parts.documents;
    this.#folder = parts.folder;
    this.#foldLarge = parts.foldLarge;
  }

  /** The stack's state as last written; null when there is no such stack. */
  async readHead(ref: StackRef): Promise<{ stack: StackRow; state: StateDocument } | null> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const stack = await this.#stacks.find(ref);
      if (!stack) return null;
      const withTail = await this.#updates.findWithTail(stack.id);
      const state = withTail ? await this.#fold(withTail) : await this.#open(stack.checkpointId);
      if (state) return { stack, state };
    }
    throw new UnavailableError('The state changes too quickly to be read; please repeat the call', {
      retryAfterSeconds: 1,
    });
  }

  /** The state as the update that owns this version left it; null when no update does. */
  async readVersion(stackId: string, stackVersion: number): Promise<StateDocument | null> {
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const update = await this.#updates.findByVersion(stackId, stackVersion);
      if (!update) return null;
      const state = update.hasTail ? await this.#fold(update) : await this.#open(update.checkpointId);
      if (state) return state;
    }
    throw new UnavailableError('The state changes too quickly to be read; please repeat the call', {
      retryAfterSeconds: 1,
    });
  }

  /** A short journal over a small state is replayed for the occasion; otherwise a worker makes a checkpoint of it first. */
  async #fold(update: UpdateRow): Promise<StateDocument | null> {
    const base = update.baseCheckpointId ? await this.#checkpoints.find(update.baseCheckpointId) : null;
    if (update.entryCount > replayedHereEntries || (base?.sizeBytes ?? 0) > replayedHereBytes) {
      await this.#foldLarge(update.id);
      const folded = await this.#updates.find(update.id);
      return folded ? this.#open(folded.checkpointId) : null;
    }
    const folded = await this.#folder.replay(update);
    if (!folded) return null;
    return {
      sizeBytes: folded.document.length,
      bytes: once(folded.document),
      resourceCount: folded.resourceCount,
      checkpointId: null,
    };
  }

  async #open(checkpointId: string | null): Promise<StateDocument | null> {
    if (checkpointId === null) {
      return { sizeBytes: emptyDocument.length, bytes: once(emptyDocument), resourceCount: 0, checkpointId };
    }
    const checkpoint = await this.#checkpoints.find(checkpointId);
    if (!checkpoint) return null;
    const bytes = this.#documents.open(checkpoint);
    // The first piece is fetched here, so that a blob which is gone can still be answered by asking again.
    const first = await bytes.next().catch((error: unknown) => {
      if (error instanceof BlobNotFoundError) return null;
      throw error;
    });
    if (!first) return null;
    return {
      sizeBytes: checkpoint.sizeBytes,
      resourceCount: checkpoint.resourceCount,
      checkpointId,
      bytes: resume(first, bytes),
    };
  }
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function* resume(first: IteratorResult<Buffer>, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}
