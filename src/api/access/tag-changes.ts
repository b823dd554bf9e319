import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { hasPermission } from '../../shared/access/permissions.ts';
import type { LockedAccess } from '../../shared/identity/identity-repository.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, type StackRef } from '../../shared/stacks/names.ts';
import { createRestorableStackRepository } from '../../shared/stacks/restorable-stack-repository.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags, type Tags } from '../../shared/stacks/tags.ts';
import { assertSameRules, otherGrants } from '../../shared/updates/rules/rule-selection.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';

/** A tag decides about permissions or rules that the caller may not change. */
export class DecidingTagError extends ForbiddenError {
  override readonly name = 'DecidingTagError';
}

/** Call with the stack locked. Throws DecidingTagError. */
export async function changeTags(
  tx: Queryable,
  access: LockedAccess,
  stack: StackRow,
  tags: Tags,
  audit: AuditTrail,
): Promise<void> {
  await assertMayChangeTags(tx, access, stack, tags);
  await createStackRepository(tx).setTags(stack.id, JSON.stringify(tags));
  const details = { stackId: stack.id, names: Object.keys(tags).slice(0, 20) };
  const { organization } = stack;
  await audit.record(tx, { action: 'stack.tags', organization, object: formatStackRef(stack), details });
}

/**
 * Refuses a change of a tag by which grants or update rules select stacks, unless the caller may manage the stack: a writer could otherwise
 * change its access, or end its freeze.
 */
async function assertMayChangeTags(tx: Queryable, access: LockedAccess, stack: StackRow, newTags: Tags): Promise<void> {
  const tags = readTags(stack.tags);
  const isChanged = (name: string): boolean => tags[name] !== newTags[name];
  if (![...Object.keys(tags), ...Object.keys(newTags)].some(isChanged)) return;
  if (hasPermission(permissionsOn(access, { ...stack, tags }), 'manage')) return;
  const ofGrants = access.facts === null ? [] : await createGrantRepository(tx).listTagNames(stack.organizationId);
  const granting = ofGrants.find(isChanged);
  if (granting !== undefined) throw neededFor(granting, 'the permissions on the stack');
  const ruling = (await createUpdateRuleRepository(tx).listTagNames(stack.organizationId)).find(isChanged);
  if (ruling !== undefined) throw neededFor(ruling, 'the rules of its updates');
}

/**
 * A new stack that takes the name of a restorable deleted one must have the tags by which rules or grants selected that one, and no new
 * grants, unless the caller may manage that one: deleting and recreating a stack must not bypass the check of its tags. Returns the id of
 * the deleted stack, whose policy groups the new stack takes over. Throws ForbiddenError.
 */
export async function assertMayFollow(
  tx: Queryable,
  access: LockedAccess,
  { organizationId, projectId }: { readonly organizationId: string; readonly projectId: string },
  { ref, tags, teams }: { readonly ref: StackRef; readonly tags: Tags; readonly teams: readonly string[] },
): Promise<string | null> {
  const { project, stack } = ref;
  const former = await createRestorableStackRepository(tx).findFormer(projectId, stack);
  if (former === null) return null;
  const before = { project, stack, tags: readTags(former.tags) };
  if (hasPermission(permissionsOn(access, before), 'manage')) return former.id;
  const next = { project, stack, tags };
  await assertSameRules(tx, { ...ref, organizationId }, before, next);
  if (teams.length > 0) throw otherGrants(ref);
  if (await createGrantRepository(tx).distinguishes(organizationId, before, next)) throw otherGrants(ref);
  return former.id;
}

function neededFor(tag: string, decided: string): DecidingTagError {
  return new DecidingTagError(`Tag ${JSON.stringify(tag)} decides ${decided}: changing it needs the permission manage`);
}
