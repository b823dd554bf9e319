import { ConflictError } from '../platform/errors/errors.ts';

/** The SDKs match the first sentence literally (sdk/go/auto/errors.go). */
export class StackBusyError extends ConflictError {
  override readonly name = 'StackBusyError';
  override readonly code = 'stack-busy';
  constructor(details = 'Wait until it ends, or end it with `pulumi cancel`') {
    super(`Conflict: Another update is currently in progress. ${details}`);
  }
}
