import { randomUUID } from 'node:crypto';
import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { hasPermission, namesOf } from '../../shared/access/permissions.ts';
import { permissionsOn } from '../../shared/identity/locked-rights.ts';
import { renameStack } from '../../shared/jobs/job-list.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError, InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { isSegmentName, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { stackExists, stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags, type Tags, tagsIn } from '../../shared/stacks/tags.ts';
import type { Reclaim } from '../../shared/state/reclaim-stack.ts';
import { assertSameRules, otherGrants } from '../../shared/updates/rules/rule-selection.ts';
import { createUpdateRuleRepository } from '../../shared/updates/rules/update-rule-repository.ts';
import { missingPermission } from '../access/stack-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller, Dialect } from '../platform/http/request.ts';
import { assertNotConsumed, awaitConsumers } from '../updates/rules/consumers.ts';

/** Larger states, uncompressed, are renamed by a worker. */
const maxDirectDocumentBytes = 8 * 1024 * 1024;

/** `newName` may be the contract's `org/project/stack`. Throws InvalidRequestError for invalid names and for another organization. */
export function renameTarget(
  from: StackRef,
  request: { newName?: string | null; newProject?: string | null },
  dialect: Dialect,
): StackRef {
  const name = request.newName || from.stack;
  if (dialect === 'contract' && !name.includes('/')) {
    throw new InvalidRequestError(
      `${JSON.stringify(name.slice(0, 300))} is not a fully qualified stack name: organization/project/stack`,
    );
  }
  const target = name.includes('/')
    ? parseQualifiedName(name)
    : { organization: from.organization, project: request.newProject || from.project, stack: name };
  if (target && !isSegmentName(target.project)) {
    throw new InvalidRequestError(`${JSON.stringify(target.project.slice(0, 300))} is not a valid project name`);
  }
  if (!target || !isSegmentName(target.stack)) {
    throw new InvalidRequestError(
      `${JSON.stringify(name.slice(0, 300))} is not a valid stack name, nor of the form organization/project/stack`,
    );
  }
  if (target.organization !== from.organization) {
    throw new InvalidRequestError('A stack can only be renamed within its organization');
  }
  if (!request.newName && !request.newProject) throw new InvalidRequestError('newName or newProject is required');
  return target;
}

/** Renames small states in this process, large ones on a worker (StackRenamer). */
export class StackRenaming {
  readonly #context: ApiContext;
  readonly #reclaim: Reclaim;

  constructor(context: ApiContext, reclaim: Reclaim) {
    this.#context = context;
    this.#reclaim = reclaim;
  }

  /**
   * Throws NotFoundError, StackBusyError, and ConflictError if the target exists or the stack was changed in the meantime; nothing is
   * changed if it throws. `assertAwaited` throws if the client has disconnected.
   */
  async rename(
    from: StackRef,
    to: StackRef,
    { caller, audit, assertAwaited }: { caller: Caller; audit: AuditTrail; assertAwaited: () => Promise<void> },
  ): Promise<void> {
    const { stateEdits, checkpoints, config, db, dispatcher, jobServices, stacks } = this.#context;
    const stack = await stacks.find(from);
    if (!stack) throw stackNotFound(from);
    assertMayRename(caller, from, to, readTags(stack.tags));
    if (await stacks.find(to)) throw stackExists(to);
    const ruled = await createUpdateRuleRepository(db).findStack(from);
    if (ruled) await assertNotConsumed(db, ruled, caller, 'rename', await awaitConsumers(db, ruled));
    // The commit decides. This check avoids rewriting a state for a rename that is refused anyway.
    await assertSameSelection(db, caller, stack, to);
    await this.#reclaim(stack.id, { organization: stack.organization, waitsForLock: true });
    const head = await stateEdits.findHead(stack.id);
    const checkpoint = head.checkpointId === null ? null : await checkpoints.find(head.checkpointId);
    const { sizeBytes, storedBytes } = checkpoint ?? { sizeBytes: 0, storedBytes: 0 };
    const isSmall = storedBytes <= config.limits.directBytes && sizeBytes <= maxDirectDocumentBytes;
    const renaming = renameStack.create({
      stackId: stack.id,
      updateId: randomUUID(),
      admission: await stateEdits.admit(head),
      from: toRef(from),
      to,
      requestedBy: caller.userId,
      tokenId: caller.tokenId,
      source: audit.source,
    });
    const options = { bytes: storedBytes, fairnessKey: from.organization };
    try {
      if (isSmall) {
        await renameStack.run(jobServices, renaming, assertAwaited);
      } else {
        await assertAwaited();
        await dispatcher.run(renaming, options);
      }
    } catch (error) {
      await stateEdits.resolveFailure(renaming.updateId, error);
    }
    audit.settle();
  }
}

/**
 * The caller must be allowed to write under the new name. Without the permission to manage, the caller must not gain a permission by the
 * rename, which would bypass grants.
 */
function assertMayRename(caller: Caller, from: StackRef, to: StackRef, tags: Tags): void {
  const before = permissionsOn(caller, { ...from, tags });
  const after = permissionsOn(caller, { ...to, tags });
  if (!hasPermission(after, 'write')) throw missingPermission('write', after, to);
  const gained = namesOf(after & ~before);
  if (gained.length > 0 && !hasPermission(before, 'manage'))
    throw new ForbiddenError(
      `Under this name you would gain the permission ${gained.join(', ')}, which needs the permission manage`,
    );
}

/** Refuses a rename after which other rules or grants would apply, unless the caller may manage the stack. */
async function assertSameSelection(db: Queryable, caller: Caller, stack: StackRow, to: StackRef): Promise<void> {
  const tags = readTags(stack.tags);
  const present = { project: stack.project, stack: stack.stack, tags };
  if (hasPermission(permissionsOn(caller, present), 'manage')) return;
  const next = { project: to.project, stack: to.stack, tags: tagsIn(to.project, tags) };
  await assertSameRules(db, stack, present, next);
  if (await createGrantRepository(db).distinguishes(stack.organizationId, present, next)) throw otherGrants(stack);
}

/** Drops further path parameters. */
function toRef({ organization, project, stack }: StackRef): StackRef {
  return { organization, project, stack };
}
