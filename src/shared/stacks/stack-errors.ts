import { ConflictError, NotFoundError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from './names.ts';

export function stackNotFound(ref: StackRef): NotFoundError {
  return new NotFoundError(`Stack '${formatStackRef(ref)}' not found`);
}

/** The CLI matches "already exists" in the message (pkg/backend/httpstate/backend.go). */
export function stackExists(ref: StackRef): ConflictError {
  return new ConflictError(`Stack '${formatStackRef(ref)}' already exists`);
}

/** An import of the stack was interrupted, or goes on: what it has now is an old state. */
export class ImportUnfinishedError extends ConflictError {
  override readonly name = 'ImportUnfinishedError';
  override readonly code = 'import-unfinished';
}

/** Throws ImportUnfinishedError. */
export function assertImported(stack: StackRef & { readonly isImportUnfinished: boolean }): void {
  if (!stack.isImportUnfinished) return;
  throw new ImportUnfinishedError(
    `The import of ${formatStackRef(stack)} has not ended, so this is an old state. Wait for it; if it was interrupted, run ` +
      '`holdfast import --apply` again, or delete the stack',
  );
}
