import { ConflictError } from '../platform/errors/errors.ts';

/**
 * Part of messages about updates refused by 409. The CLI adds to each a link to a page about conflicts of updates, which advises `pulumi
 * cancel`. This command would end the update that holds the stack.
 */
export const cancelHint = '`pulumi cancel` does not help';

/** A rule does not admit the update now. Nothing was changed. */
export abstract class DeferredError extends ConflictError {
  /** Whether the update may wait until the rule admits it. */
  abstract readonly mayWait: boolean;
  /** The label for metrics. */
  abstract readonly reason: 'frozen' | 'limit';
  /** The message for a user who has waited for the stack, as a clause after "which". */
  abstract readonly state: string;
}
