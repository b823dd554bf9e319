import { ConflictError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';

/** The CLI names its command behind its version and system (pkg/backend/httpstate/client/api.go). */
const cancelPattern = /^pulumi-cli\/1 \([^()]*; cmd=cancel[;)]/;

/**
 * Whether `pulumi cancel` asks. It looks at the stack first, and says of one without a running update that it «has never been
 * updated», whether it has or not. Releases before May 2026 do not name their command.
 */
export function isCancelCommand(userAgent: string | undefined): boolean {
  return userAgent !== undefined && cancelPattern.test(userAgent);
}

/** The answer to `pulumi cancel` of a stack that is idle. */
export function nothingToCancel(ref: StackRef): ConflictError {
  return new ConflictError(`No update of stack '${formatStackRef(ref)}' is in progress, so there is nothing to cancel`);
}
