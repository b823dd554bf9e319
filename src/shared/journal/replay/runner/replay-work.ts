import type { ManifestSource } from '../../../deployments/write-document.ts';
import {
  DamagedBytesError,
  decodeDocument,
  type EncodedDocument,
  encodeDocument,
} from '../../../documents/document-codec.ts';
import { JsonSyntaxError } from '../../../platform/json/json-scanner.ts';
import { JournalReplay, type UnknownKinds } from '../rules/replay.ts';
import { JournalReplayError } from '../rules/replay-error.ts';
import { ReplaySnapshotError } from '../rules/replay-snapshot.ts';

/** What a replay begins with. */
export interface ReplayStart {
  /** The state that the update began with; null = none. */
  readonly base: EncodedDocument | null;
  /** A journal snapshot, and how many entries are in it. */
  readonly snapshot: { readonly document: EncodedDocument; readonly entries: number } | null;
}

/** What a replay begins with is not what was written. */
export class DamagedStartError extends DamagedBytesError {
  override readonly name = 'DamagedStartError';
  readonly part: keyof ReplayStart;
  constructor(part: keyof ReplayStart, message: string) {
    super(message);
    this.part = part;
  }
}

/** Entries that follow each other, in order: texts end to end, cut apart by `lengths` (in bytes). */
export interface JournalPage {
  readonly sequenceIds: readonly number[];
  readonly lengths: readonly number[];
  readonly text: Uint8Array;
}

/** How far a replay has come. */
export interface ReplayProgress {
  /** Entries applied since the base. */
  readonly entries: number;
  readonly lastSequenceId: number;
  /** See JournalReplay. */
  readonly hasGap: boolean;
  /** See JournalReplay. */
  readonly unknownKinds: UnknownKinds | null;
}

export interface ReplayedText {
  readonly document: Uint8Array;
  readonly resourceCount: number;
}

export interface ReplayedDocument {
  readonly document: EncodedDocument;
  readonly resourceCount: number;
}

/** The part of a compaction that only computes: no I/O, so any thread can do it. */
export class ReplayWork {
  readonly #replay: JournalReplay;
  #entries: number;

  /**
   * Throws DamagedStartError and JournalReplayError. A snapshot that does not fit is left out: the journal itself has everything.
   */
  constructor({ base, snapshot }: ReplayStart) {
    const document = base && decode('base', base);
    const restored = snapshot && restore(document, decode('snapshot', snapshot.document));
    this.#replay = restored ?? new JournalReplay(document);
    this.#entries = restored && snapshot ? snapshot.entries : 0;
  }

  get progress(): ReplayProgress {
    const { lastSequenceId, hasGap, unknownKinds } = this.#replay;
    return { entries: this.#entries, lastSequenceId, hasGap, unknownKinds };
  }

  /** Throws JournalReplayError; the entries before the one at fault are applied then. */
  apply({ sequenceIds, lengths, text }: JournalPage): ReplayProgress {
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    let end = 0;
    sequenceIds.forEach((sequenceId, at) => {
      const start = end;
      end += lengths[at] as number;
      const entry = { sequenceId, text: bytes.subarray(start, end) };
      if (computing(sequenceId, () => this.#replay.apply(entry))) this.#entries++;
    });
    return this.progress;
  }

  /** Throws JournalReplayError. */
  write(manifest: ManifestSource): ReplayedText {
    const { document, resourceCount } = computing(null, () => this.#replay.generate(manifest));
    return { document, resourceCount };
  }

  /** As `write`, ready to be stored. */
  encode(manifest: ManifestSource): ReplayedDocument {
    const { document, resourceCount } = computing(null, () => this.#replay.generate(manifest));
    return { document: encodeDocument(document), resourceCount };
  }

  snapshot(): EncodedDocument {
    return encodeDocument(this.#replay.snapshot());
  }
}

function decode(part: keyof ReplayStart, document: EncodedDocument): Buffer {
  try {
    return decodeDocument(document);
  } catch (error) {
    if (error instanceof DamagedBytesError) throw new DamagedStartError(part, error.message);
    throw error;
  }
}

/**
 * Runs a computation that depends on the journal alone. An error that nobody foresaw comes back with every repeat, so it counts
 * as one of the journal, or the stack could not be used before the next release.
 */
function computing<T>(sequenceId: number | null, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError || error instanceof JsonSyntaxError)) throw error;
    throw new JournalReplayError('unexpected', error.message, sequenceId, { cause: error });
  }
}

/** Null when the snapshot is of another release, or was taken over another base. */
function restore(base: Buffer | null, snapshot: Buffer): JournalReplay | null {
  try {
    return JournalReplay.restore(base, snapshot);
  } catch (error) {
    if (error instanceof ReplaySnapshotError) return null;
    throw error;
  }
}
