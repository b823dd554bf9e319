export type JournalReplayErrorCode =
  | 'malformed-base'
  | 'malformed-entry'
  | 'position-out-of-range'
  | 'write-after-changes'
  | 'late-entry'
  | 'unknown-version'
  | 'invalid-migration'
  | 'alias-conflict'
  | 'unexpected';

/** The failing call changed nothing. `sequenceId` is that of the invalid entry; null if the base itself or the result is invalid. */
export class JournalReplayError extends Error {
  override readonly name = 'JournalReplayError';
  readonly code: JournalReplayErrorCode;
  readonly sequenceId: number | null;

  constructor(code: JournalReplayErrorCode, message: string, sequenceId: number | null, options?: ErrorOptions) {
    super(sequenceId === null ? message : `Journal entry ${sequenceId}: ${message}`, options);
    this.code = code;
    this.sequenceId = sequenceId;
  }
}
