import { ConflictError, NotFoundError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from './names.ts';

/** The restore period is over or was ended: the stack's data is being deleted. */
export class StackPurgedError extends ConflictError {
  override readonly name = 'StackPurgedError';
  override readonly code = 'stack-purged';
  constructor(ref: StackRef) {
    super(`Stack '${formatStackRef(ref)}' can no longer be restored: its data is being deleted`);
  }
}

export class StackHeldError extends ConflictError {
  override readonly name = 'StackHeldError';
  override readonly code = 'stack-held';
  constructor(ref: StackRef) {
    super(`Stack '${formatStackRef(ref)}' is under a legal hold: restore it, end the hold, and delete it again`);
  }
}

/** `free` is an unused name. */
export class NameTakenError extends ConflictError {
  override readonly name = 'NameTakenError';
  override readonly code = 'stack-name-taken';
  constructor(ref: StackRef, free: string | null) {
    const hint = free === null ? '' : `, for example '${free}'`;
    super(`Stack '${formatStackRef(ref)}' already exists. Restore the deleted one under another name${hint}`);
  }
}

export function deletedStackNotFound(): NotFoundError {
  return new NotFoundError(
    'There is no deleted stack with this id: it was restored or purged, or was never in this organization',
  );
}
