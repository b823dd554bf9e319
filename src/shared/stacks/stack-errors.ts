import { ConflictError, NotFoundError } from '../platform/errors/errors.ts';
import { formatStackRef, type StackRef } from './names.ts';

export function stackNotFound(ref: StackRef): NotFoundError {
  return new NotFoundError(`Stack '${formatStackRef(ref)}' not found`);
}

/** The CLI looks for "already exists" in the sentence (pkg/backend/httpstate/backend.go). */
export function stackExists(ref: StackRef): ConflictError {
  return new ConflictError(`Stack '${formatStackRef(ref)}' already exists`);
}
