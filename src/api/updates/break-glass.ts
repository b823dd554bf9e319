import { hasPermission } from '../../shared/access/permissions.ts';
import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import { permissionsInPath } from '../access/stack-access.ts';
import type { Caller } from '../platform/http/request.ts';

const pattern = /^\s*break-glass:\s*(\S[\s\S]*)$/i;
const maxReasonChars = 500;

/** The reason for bypassing rules, given as `break-glass: <reason>` in the update's message, which every CLI can send. */
export function breakGlassReason(message: string): string | null {
  return pattern.exec(message)?.[1]?.trim().slice(0, maxReasonChars).toWellFormed() ?? null;
}

export function isUrgent(caller: Caller, ref: StackRef, message: string): boolean {
  return breakGlassReason(message) !== null && hasPermission(permissionsInPath(caller, ref), 'manage');
}

export function mayBreakGlass(access: LockedAccess, stack: StackWithRules): boolean {
  return hasPermission(permissionsOn(access, { ...stack, tags: readTags(stack.tags) }), 'manage');
}
