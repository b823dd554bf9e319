import { createGrantRepository } from '../../shared/identity/grant-repository.ts';
import { permissionsOn } from '../../shared/identity/held-rights.ts';
import type { HeldAccess } from '../../shared/identity/identity-repository.ts';
import { hasPermission } from '../../shared/identity/permissions.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags, type Tags } from '../../shared/stacks/tags.ts';

/**
 * Throws ForbiddenError if the new tags of a locked stack would change one by which grants select stacks, unless the caller may
 * manage the stack: whoever writes to a stack could otherwise decide who else does.
 */
export async function assertMayChangeTags(
  tx: Queryable,
  access: HeldAccess,
  stack: StackRow,
  newTags: Tags,
): Promise<void> {
  if (access.facts === null) return;
  const tags = readTags(stack.tags);
  if (hasPermission(permissionsOn(access, { ...stack, tags }), 'manage')) return;
  const names = await createGrantRepository(tx).listTagNames(stack.organizationId);
  const changed = names.find((name) => tags[name] !== newTags[name]);
  if (changed !== undefined) {
    throw new ForbiddenError(
      `Tag ${JSON.stringify(changed)} decides who may do what with the stack: changing it needs the permission manage`,
    );
  }
}
