import { serverSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { createApprovalRepository } from '../../shared/journal/guards/approval-repository.ts';
import { commitOf } from '../../shared/journal/guards/approvals.ts';
import { limitsOf } from '../../shared/journal/guards/guard-limits.ts';
import { createGuardRepository } from '../../shared/journal/guards/guard-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { StackWithRules } from '../../shared/updates/rules/update-rule-repository.ts';
import type { Caller } from '../request.ts';

/** What is known of an update when it is created. */
interface CreatedUpdate {
  readonly stack: StackWithRules;
  readonly kind: string;
  readonly environment: object;
  readonly caller: Caller;
}

/**
 * Sets the limits of an update that was just created, unless the commit that it runs is approved. Costs nothing where the stack has no
 * rules. The stack is locked.
 */
export async function guardUpdate(tx: Queryable, updateId: string, created: CreatedUpdate): Promise<void> {
  const { caller, environment, kind, stack } = created;
  if (stack.updateRules.isEmpty) return;
  const commit = commitOf(environment);
  const { organization } = stack;
  const object = formatStackRef(stack);
  const limits = limitsOf(stack.updateRules, { organization, stack: object, kind, commit });
  if (!limits) return;
  const subject = commit === null ? null : { stackId: stack.id, kind, commit };
  const approval = subject && (await createApprovalRepository(tx).findValid(subject, caller));
  if (!approval) {
    await createGuardRepository(tx).insert(updateId, limits);
    return;
  }
  const { approvedBy, id: approvalId, reason } = approval;
  const details = { stackId: stack.id, kind, commit, approvalId, approvedBy, reason };
  const event = { action: 'approval.use', organization, object, updateId, details } as const;
  await createAuditRepository(tx).insert(serverSource, event);
}
