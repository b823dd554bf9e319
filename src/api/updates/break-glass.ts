import { hasPermission } from '../../shared/access/permissions.ts';
import { permissionsOn } from '../../shared/identity/held-rights.ts';
import type { HeldAccess } from '../../shared/identity/identity-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import type { Caller } from '../platform/http/request.ts';

const pattern = /^\s*break-glass:\s*(\S[\s\S]*)$/i;
const maxReasonChars = 500;

/**
 * The reason for which an update is to go through although rules hold it back: `break-glass: <reason>` in its message, which every CLI
 * can say. Null if it does not ask for that.
 */
export function breakGlassReason(message: string): string | null {
  return pattern.exec(message)?.[1]?.trim().slice(0, maxReasonChars).toWellFormed() ?? null;
}

/** Whether an update goes before the others that wait. */
export function isUrgent(caller: Caller, ref: StackRef, message: string): boolean {
  return breakGlassReason(message) !== null && hasPermission(permissionsInPath(caller, ref), 'manage');
}

/** Whether somebody with this access may do so: whoever may manage the stack. */
export function mayBreakGlass(access: HeldAccess, stack: StackWithRules): boolean {
  return hasPermission(permissionsOn(access, { ...stack, tags: readTags(stack.tags) }), 'manage');
}
