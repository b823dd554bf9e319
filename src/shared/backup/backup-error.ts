import { BlobStoreUnavailableError } from '../platform/blobs/blob-store.ts';
import { isOutage } from '../platform/db/sqlstate.ts';
import { OperatorError, UnavailableError } from '../platform/errors/errors.ts';

/** A backup is damaged, incomplete, or in an unknown format. */
export class BackupError extends OperatorError {
  override readonly name: string = 'BackupError';
}

/** The manifest does not have its hash, or belongs to another backup. */
export class DamagedManifestError extends BackupError {
  override readonly name = 'DamagedManifestError';
  readonly backup: string;

  constructor(backup: string, message: string) {
    super(message);
    this.backup = backup;
  }
}

/** Whether a store or database has failed, which is no fault of the backup. A store can be faulty at a single object. */
export function isOutageBeside(error: unknown): boolean {
  if (error instanceof BlobStoreUnavailableError) return error.fault !== 'faulty';
  if (error instanceof BackupError) return error.cause !== undefined && isOutageBeside(error.cause);
  return error instanceof UnavailableError || isOutage(error);
}
