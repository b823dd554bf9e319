import { ConflictError, NotFoundError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from './names.ts';

export function stackNotFound(ref: StackRef): NotFoundError {
  return new NotFoundError(`Stack '${formatStackRef(ref)}' not found`);
}

/** The CLI matches "already exists" in the message (pkg/backend/httpstate/backend.go). */
export function stackExists(ref: StackRef): ConflictError {
  return new ConflictError(`Stack '${formatStackRef(ref)}' already exists`);
}
