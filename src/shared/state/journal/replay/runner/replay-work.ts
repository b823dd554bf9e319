import { JsonSyntaxError } from '../../../../platform/json/json-scanner.ts';
import {
  DamagedBytesError,
  decodeDocument,
  type EncodedDocument,
  encodeDocument,
} from '../../../checkpoints/document-codec.ts';
import type { ManifestSource } from '../../../deployments/write-document.ts';
import { JournalReplay, type UnknownKinds } from '../rules/apply-entries.ts';
import { JournalReplayError } from '../rules/replay-error.ts';
import { ReplaySnapshotError } from '../rules/replay-snapshot.ts';

export interface ReplayStart {
  /** The state before the update. */
  readonly base: EncodedDocument | null;
  /** `entries`: the number of entries in the snapshot. */
  readonly snapshot: { readonly document: EncodedDocument; readonly entries: number } | null;
}

/** The bytes do not match the bytes that were written. */
export class DamagedStartError extends DamagedBytesError {
  override readonly name = 'DamagedStartError';
  readonly part: keyof ReplayStart;
  constructor(part: keyof ReplayStart, message: string) {
    super(message);
    this.part = part;
  }
}

/** Consecutive entries, in order, with their texts end to end; `lengths` are in bytes. */
export interface JournalPage {
  readonly sequenceIds: readonly number[];
  readonly lengths: readonly number[];
  readonly text: Uint8Array;
}

export interface ReplayProgress {
  /** Entries applied since the base. */
  readonly entries: number;
  readonly lastSequenceId: number;
  readonly hasGap: boolean;
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

/** Does no I/O, so it can run in any thread. */
export class ReplayWork {
  readonly #replay: JournalReplay;
  #entries: number;

  /** Ignores a snapshot that does not match, since the journal has all entries. Throws DamagedStartError and JournalReplayError. */
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

  /** Throws JournalReplayError for an invalid entry; the entries before it stay applied. */
  apply({ sequenceIds, lengths, text }: JournalPage): ReplayProgress {
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    let end = 0;
    sequenceIds.forEach((sequenceId, at) => {
      const start = end;
      end += lengths[at] as number;
      const entry = { sequenceId, text: bytes.subarray(start, end) };
      if (asReplayError(sequenceId, () => this.#replay.apply(entry))) this.#entries++;
    });
    return this.progress;
  }

  /** Throws JournalReplayError. */
  write(manifest: ManifestSource): ReplayedText {
    const { document, resourceCount } = asReplayError(null, () => this.#replay.generate(manifest));
    return { document, resourceCount };
  }

  /** Encodes the document for storage. */
  encode(manifest: ManifestSource): ReplayedDocument {
    const { document, resourceCount } = asReplayError(null, () => this.#replay.generate(manifest));
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
 * `work` depends on the journal alone. An unexpected error would recur on every retry, so it is reported as an error of the journal.
 * Otherwise the stack would be unusable until the next release.
 */
function asReplayError<T>(sequenceId: number | null, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError || error instanceof JsonSyntaxError)) throw error;
    throw new JournalReplayError('unexpected', error.message, sequenceId, { cause: error });
  }
}

/** Returns null if the snapshot has another release's format or was taken over a different base. */
function restore(base: Buffer | null, snapshot: Buffer): JournalReplay | null {
  try {
    return JournalReplay.restore(base, snapshot);
  } catch (error) {
    if (error instanceof ReplaySnapshotError) return null;
    throw error;
  }
}
