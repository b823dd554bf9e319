import type { ManifestSource } from '../../../deployments/write-document.ts';
import { InvalidRequestError } from '../../../platform/errors/errors.ts';
import { JournalReplayError } from '../rules/replay-error.ts';
import {
  type JournalPage,
  type ReplayedDocument,
  type ReplayedText,
  type ReplayProgress,
  type ReplayStart,
  ReplayWork,
} from './replay-work.ts';

/** The journal cannot be replayed. Its entries are kept; the state stays as it was before them. */
export class InvalidJournalError extends InvalidRequestError {
  override readonly name = 'InvalidJournalError';
  override readonly code = 'invalid-journal';
}

/** Runs the computation of replays: in this thread, or in one that holds up nobody. */
export interface ReplayRunner {
  /** Bytes given are the replay's from then on. Rejects with InvalidJournalError and DamagedStartError; anything else is worth a retry. */
  open(start: ReplayStart): Promise<OpenReplay>;
}

/** One replay; see ReplayWork for what the steps do. They are done in the order of the calls and fail as `open` does. */
export interface OpenReplay {
  /** At the beginning: 0 entries, or those of the snapshot. */
  readonly begun: ReplayProgress;
  apply(page: JournalPage): Promise<ReplayProgress>;
  /** How far it has come; after an `apply` that was refused, the entries before the one at fault. */
  progress(): Promise<ReplayProgress>;
  write(manifest: ManifestSource): Promise<ReplayedText>;
  encode(manifest: ManifestSource): Promise<ReplayedDocument>;
  snapshot(): Promise<ReplayedDocument['document']>;
  close(): void;
}

/** For replays that take a few ms at most. */
export const replayHere: ReplayRunner = {
  open: async (start) => {
    const work = asInvalidJournal(() => new ReplayWork(start));
    return {
      begun: work.progress,
      apply: async (page) => asInvalidJournal(() => work.apply(page)),
      progress: async () => work.progress,
      write: async (manifest) => asInvalidJournal(() => work.write(manifest)),
      encode: async (manifest) => asInvalidJournal(() => work.encode(manifest)),
      snapshot: async () => work.snapshot(),
      close: () => {},
    };
  },
};

/** Bounds of what is replayed without another thread, or worker: 6 to 9 ms of CPU, in which a process answers nobody. */
const shortEntries = 500;
const shortBytes = 512 * 1024;

export function isShortReplay(size: { entries: number; bytes: number }): boolean {
  return size.entries <= shortEntries && size.bytes <= shortBytes;
}

function asInvalidJournal<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof JournalReplayError) throw new InvalidJournalError(error.message, { cause: error });
    throw error;
  }
}
