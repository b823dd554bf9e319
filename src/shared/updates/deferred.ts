import { ConflictError } from '../platform/errors/errors.ts';

/** A rule does not let the update be created now. Nothing was changed. */
export abstract class DeferredError extends ConflictError {
  /** Whether the update may wait until the rule admits it. */
  abstract readonly mayWait: boolean;
  /** For metrics. */
  abstract readonly reason: 'frozen' | 'limit';
  /** The message for a user who has waited for the stack, after "which". */
  abstract readonly state: string;
}
