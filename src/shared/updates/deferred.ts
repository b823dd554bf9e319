import { ConflictError } from '../platform/errors/errors.ts';

/**
 * For messages of updates refused by 409. The CLI adds a link to a page that advises `pulumi cancel`, which would end the update that holds
 * the stack.
 */
export const cancelHint = '`pulumi cancel` does not help';

/** A rule does not admit the update now. Nothing was changed. */
export abstract class DeferredError extends ConflictError {
  abstract readonly mayWait: boolean;
  abstract readonly reason: 'frozen' | 'limit';
  /** The message for a user who has waited for the stack, as a clause after "which". */
  abstract readonly state: string;
}
