import { decodeDocument, type EncodedDocument, encodeDocument } from '../checkpoints/document-codec.ts';
import { JournalReplay } from './replay.ts';
import { ReplaySnapshotError } from './replay-snapshot.ts';
import type { ManifestSource } from './write-document.ts';

/** What a replay begins with. */
export interface ReplayStart {
  /** The stored bytes of the state that the update began with; null = none. */
  readonly base: Uint8Array | null;
  /** The stored bytes of a fold point, and how many entries are in it. */
  readonly point: { readonly bytes: Uint8Array; readonly entries: number } | null;
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
}

export interface ReplayedText {
  readonly document: Uint8Array;
  readonly resourceCount: number;
}

export interface ReplayedDocument {
  readonly document: EncodedDocument;
  readonly resourceCount: number;
}

/** The part of a fold that is computation alone: no I/O, so that it can be done in any thread. */
export class ReplayWork {
  readonly #replay: JournalReplay;
  #entries: number;

  /** Throws JournalReplayError. A point that does not fit is left: the journal itself has everything. */
  constructor({ base, point }: ReplayStart) {
    const document = base && decodeDocument(base);
    const restored = point && restore(document, decodeDocument(point.bytes));
    this.#replay = restored ?? new JournalReplay(document);
    this.#entries = restored && point ? point.entries : 0;
  }

  get progress(): ReplayProgress {
    const { lastSequenceId, hasGap } = this.#replay;
    return { entries: this.#entries, lastSequenceId, hasGap };
  }

  /** Throws JournalReplayError. */
  apply({ sequenceIds, lengths, text }: JournalPage): ReplayProgress {
    const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
    let end = 0;
    sequenceIds.forEach((sequenceId, at) => {
      const start = end;
      end += lengths[at] as number;
      if (this.#replay.apply({ sequenceId, text: bytes.subarray(start, end) })) this.#entries++;
    });
    return this.progress;
  }

  /** Throws JournalReplayError. */
  write(manifest: ManifestSource): ReplayedText {
    const { document, resourceCount } = this.#replay.generate(manifest);
    return { document, resourceCount };
  }

  /** As `write`, ready to be stored. */
  encode(manifest: ManifestSource): ReplayedDocument {
    const { document, resourceCount } = this.#replay.generate(manifest);
    return { document: encodeDocument(document), resourceCount };
  }

  snapshot(): EncodedDocument {
    return encodeDocument(this.#replay.snapshot());
  }
}

/** Null when the point is of another release, or was taken over another base. */
function restore(base: Buffer | null, point: Buffer): JournalReplay | null {
  try {
    return JournalReplay.restore(base, point);
  } catch (error) {
    if (error instanceof ReplaySnapshotError) return null;
    throw error;
  }
}
