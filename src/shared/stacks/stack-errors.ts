import { ConflictError, NotFoundError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from './names.ts';

export function stackNotFound(ref: StackRef): NotFoundError {
  return new NotFoundError(`Stack '${formatStackRef(ref)}' not found`);
}

/** The CLI matches "already exists" in the message (pkg/backend/httpstate/backend.go). */
export function stackExists(ref: StackRef): ConflictError {
  return new ConflictError(`Stack '${formatStackRef(ref)}' already exists`);
}

/** The import was interrupted, or is still running, so the stack has an old state. */
class ImportUnfinishedError extends ConflictError {
  override readonly name = 'ImportUnfinishedError';
  override readonly code = 'import-unfinished';
}

type Importable = StackRef & { readonly isImportUnfinished: boolean };

/** Null if the import has ended. */
export function describeUnfinishedImport(stack: Importable): string | null {
  if (!stack.isImportUnfinished) return null;
  return (
    `The import of ${formatStackRef(stack)} has not ended, so its newest state is not here. Wait for it; if it was interrupted, run ` +
    '`holdfast import --apply` again, take it back with `holdfast import --rollback --apply`, or delete the stack'
  );
}

/** Throws ImportUnfinishedError. */
export function assertImported(stack: Importable): void {
  const unfinished = describeUnfinishedImport(stack);
  if (unfinished !== null) throw new ImportUnfinishedError(unfinished);
}
