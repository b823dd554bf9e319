export type JournalReplayErrorCode =
  | 'malformed-base'
  | 'malformed-entry'
  | 'position-out-of-range'
  | 'write-after-changes'
  | 'late-entry'
  | 'alias-conflict'
  | 'unexpected';

/**
 * The journal and the base cannot be made into a valid deployment. Nothing was changed by the failing call.
 * `sequenceId` is the entry at fault, or null when the base itself is.
 */
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
