import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';

/** The CLI sends its command after its version and operating system (pkg/backend/httpstate/client/api.go). */
const cancelPattern = /^pulumi-cli\/1 \([^()]*; cmd=cancel[;)]/;

/**
 * Whether the request comes from `pulumi cancel`. That command gets the stack first and reports one without a running update as
 * "has never been updated", whether or not that is true. Releases before May 2026 do not send their command.
 */
export function isCancelCommand(userAgent: string | undefined): boolean {
  return userAgent !== undefined && cancelPattern.test(userAgent);
}

/** The error for `pulumi cancel` of an idle stack. */
export function nothingToCancel(ref: StackRef): ConflictError {
  return new ConflictError(`No update of stack '${formatStackRef(ref)}' is in progress, so there is nothing to cancel`);
}
