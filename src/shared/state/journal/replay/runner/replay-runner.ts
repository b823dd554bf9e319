import { InvalidRequestError, UnavailableError } from '../../../../platform/errors/errors.ts';
import type { ManifestSource } from '../../../deployments/write-document.ts';
import { JournalReplayError } from '../rules/replay-error.ts';
import {
  type JournalPage,
  type ReplayedDocument,
  type ReplayedText,
  type ReplayProgress,
  type ReplayStart,
  ReplayWork,
} from './replay-work.ts';

/** The entries are kept and the state is unchanged. */
export class InvalidJournalError extends InvalidRequestError {
  override readonly name = 'InvalidJournalError';
  override readonly code = 'invalid-journal';
}

/** The replay can be repeated in another thread. */
export class ReplayEndedError extends UnavailableError {
  override readonly name = 'ReplayEndedError';
}

export interface ReplayRunner {
  /** Takes ownership of the bytes passed in. Rejects with InvalidJournalError or DamagedStartError; any other error can be retried. */
  open(start: ReplayStart): Promise<OpenReplay>;
}

/** The steps are those of ReplayWork. They run in the order of the calls and fail like `open`. */
export interface OpenReplay {
  /** 0 entries, or the entries of the snapshot. */
  readonly initialProgress: ReplayProgress;
  apply(page: JournalPage): Promise<ReplayProgress>;
  /** After a failed `apply`, includes the entries before the invalid one. */
  progress(): Promise<ReplayProgress>;
  write(manifest: ManifestSource): Promise<ReplayedText>;
  encode(manifest: ManifestSource): Promise<ReplayedDocument>;
  snapshot(): Promise<ReplayedDocument['document']>;
  close(): void;
}

/** Blocks this thread: only for replays of a few ms. */
export const replayHere: ReplayRunner = {
  open: async (start) => {
    const work = asInvalidJournal(() => new ReplayWork(start));
    return {
      initialProgress: work.progress,
      apply: async (page) => asInvalidJournal(() => work.apply(page)),
      progress: async () => work.progress,
      write: async (manifest) => asInvalidJournal(() => work.write(manifest)),
      encode: async (manifest) => asInvalidJournal(() => work.encode(manifest)),
      snapshot: async () => work.snapshot(),
      close: () => {},
    };
  },
};

/** Such a replay blocks the calling thread for 6 to 9 ms. Larger replays use another thread or a worker. */
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
