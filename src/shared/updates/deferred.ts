import { ConflictError } from '../platform/errors/errors.ts';

/**
 * For messages about updates that were refused by 409: to each, the CLI adds a link to a page about conflicts of updates, which advises
 * `pulumi cancel`. That would end the update that holds the stack.
 */
export const cancelHint = '`pulumi cancel` does not help';

/** A rule does not let the update be created now. Nothing was changed. */
export abstract class DeferredError extends ConflictError {
  /** Whether the update may wait until the rule admits it. */
  abstract readonly mayWait: boolean;
  /** For metrics. */
  abstract readonly reason: 'frozen' | 'limit';
  /** The message for a user who has waited for the stack, after "which". */
  abstract readonly state: string;
}
