import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { lockPeople } from '../../shared/identity/bootstrap-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isLockTimeout } from '../../shared/platform/db/sqlstate.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import { createUpdateRepository } from '../../shared/updates/update-repository.ts';
import { operator } from '../admin/operator-name.ts';
import { assertWritable } from './assert-writable.ts';
import { messageOf, readSourceFacts } from './import-plan.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import type { SourceStack } from './moving-source.ts';
import { orderOf } from './stack-here.ts';

export interface StackRollback {
  readonly source: string;
  /** `none`: the stack is not here. */
  readonly action: 'delete' | 'keep' | 'none';
  readonly versions: number;
  readonly reason: string | null;
}

interface RollbackParts {
  readonly context: AppContext;
  readonly organization: string;
  /** For the audit log. */
  readonly from: string;
}

/** If `apply`, deletes a stack that has only imported versions of this source. The stack can be restored, as after `pulumi stack rm`. */
export async function rollBackStack(
  parts: RollbackParts,
  source: SourceStack,
  { apply }: { readonly apply: boolean },
): Promise<StackRollback> {
  const result = (action: StackRollback['action'], versions = 0, reason: string | null = null): StackRollback => ({
    ...{ source: source.name, action, versions, reason },
  });
  try {
    const content = await source.open();
    const project = source.project ?? (await readSourceFacts(content.state))?.project ?? null;
    if (project === null) return result('none');
    const stack = await parts.context.stacks.find({ organization: parts.organization, project, stack: source.stack });
    if (stack === null) return result('none');
    const rows = createImportedVersionRepository(parts.context.db);
    const entries = await rows.listEntries(stack.id);
    const known = new Set(orderOf(content));
    const keep = (reason: string) => result('keep', entries.length, reason);
    // An import may have begun the stack without bringing a version.
    if (entries.length === 0 && !(await rows.isBegun(stack.id))) return keep('it has no imported versions');
    if (entries.some(({ entry }) => entry !== '' && !known.has(entry)))
      return keep('it has versions of another source');
    // Without an entry in the history of the source, only the state tells the origin of a stack.
    if (content.decrypt === null && entries.every(({ entry }) => entry === '')) {
      const headHash = await rows.findHeadHash(stack.id);
      if (headHash !== null && headHash !== (await readSourceFacts(content.state))?.sha256)
        return keep(
          'its state is not the one of the source: if the stack came from there, and was updated there since, import it again first',
        );
    }
    const last = entries.at(-1)?.stackVersion ?? 0;
    const fault = await writtenSince(parts.context.db, stack, last);
    if (fault !== null) return keep(fault);
    if (apply) await deleteStack(parts, stack, last);
    return result('delete', entries.length);
  } catch (error) {
    return result('keep', 0, messageOf(error));
  }
}

async function writtenSince(db: Queryable, stack: StackRow, last: number): Promise<string | null> {
  if (stack.activeUpdateId !== null) return 'an update of it runs here';
  if (stack.stackVersion !== last || (await createUpdateRepository(db).findWithPendingEntries(stack.id)) !== null)
    return 'it was updated here since its import';
  return null;
}

async function deleteStack({ context, from }: RollbackParts, found: StackRow, last: number): Promise<void> {
  await context.db.inTransaction(async (tx) => {
    await assertWritable(tx);
    const grants = createGrantRepository(tx);
    const teams = await grants.listTeamsOfStack(found.organizationId, found.id);
    // Removed before the stack is locked, because this locks the organization.
    if (teams.length > 0) {
      await lockPeople(tx);
      await grants.removeOfStack(found.organizationId, found.id);
    }
    const stacks = createStackRepository(tx);
    const stack = await stacks.lockById(found.id).catch((error: unknown) => {
      throw teams.length > 0 && isLockTimeout(error) ? new TransferError('it is being changed: try again') : error;
    });
    const fault = stack === null ? 'it was deleted meanwhile' : await writtenSince(tx, stack, last);
    if (fault !== null) throw new TransferError(fault);
    // Previews may run, because they take no lock on the stack.
    await createUpdateRepository(tx).cancelAll(found.id);
    await stacks.markDeleted(found.id, { days: context.config.deletedStackDays, by: operator() });
    await createAuditRepository(tx).closeSecretReads(found.id);
    await createAuditRepository(tx).insert(operatorSource(operator()), {
      ...{ action: 'stack.delete', organization: found.organization, object: formatStackRef(found) },
      details: {
        stackId: found.id,
        stackVersion: found.stackVersion,
        force: true,
        importedFrom: from,
        ...(teams.length > 0 && { teams }),
      },
    });
  });
}
