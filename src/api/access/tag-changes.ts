import { createGrantRepository } from '../../shared/identity/grant-repository.ts';
import { permissionsOn } from '../../shared/identity/held-rights.ts';
import type { HeldAccess } from '../../shared/identity/identity-repository.ts';
import { hasPermission } from '../../shared/identity/permissions.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags, type Tags } from '../../shared/stacks/tags.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';

/**
 * Throws ForbiddenError if the new tags of a locked stack would change one by which grants or rules for updates select stacks, unless
 * the caller may manage the stack: whoever writes to a stack could otherwise decide who else does, and take it out of a freeze.
 */
export async function assertMayChangeTags(
  tx: Queryable,
  access: HeldAccess,
  stack: StackRow,
  newTags: Tags,
): Promise<void> {
  const tags = readTags(stack.tags);
  const isChanged = (name: string): boolean => tags[name] !== newTags[name];
  if (![...Object.keys(tags), ...Object.keys(newTags)].some(isChanged)) return;
  if (hasPermission(permissionsOn(access, { ...stack, tags }), 'manage')) return;
  const ofGrants = access.facts === null ? [] : await createGrantRepository(tx).listTagNames(stack.organizationId);
  const granting = ofGrants.find(isChanged);
  if (granting !== undefined) throw neededFor(granting, 'who may do what with the stack');
  const ruling = (await createUpdateRuleRepository(tx).listTagNames(stack.organizationId)).find(isChanged);
  if (ruling !== undefined) throw neededFor(ruling, 'which rules its updates have');
}

function neededFor(tag: string, decided: string): ForbiddenError {
  return new ForbiddenError(`Tag ${JSON.stringify(tag)} decides ${decided}: changing it needs the permission manage`);
}
