import { OperatorError } from '../platform/errors/errors.ts';

/** A backup is damaged, incomplete, or of a format that this release does not read. */
export class BackupError extends OperatorError {
  override readonly name = 'BackupError';
}
