import { serverSource } from '../../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { formatStackRef } from '../../../shared/stacks/names.ts';
import { createChangeLimitRepository } from '../../../shared/state/journal/change-limits/change-limit-repository.ts';
import { type ChangeLimits, changeLimitsOf } from '../../../shared/state/journal/change-limits/change-limits.ts';
import { createApprovalRepository } from '../../../shared/updates/approvals/approval-repository.ts';
import { mayTokensApprove } from '../../../shared/updates/approvals/approvals.ts';
import { commitOf } from '../../../shared/updates/commit.ts';
import type { StackWithRules } from '../../../shared/updates/rules/update-rule-repository.ts';
import type { Caller } from '../../platform/http/request.ts';
import type { PreviewCheck } from '../rules/preview-check.ts';

interface CreatedUpdate {
  readonly stack: StackWithRules;
  readonly kind: string;
  readonly environment: object;
  readonly caller: Caller;
  /** The preview that its rule requires; null: none. */
  readonly preview: PreviewCheck | null;
}

/**
 * Sets the limits of an update that was just created. If its commit is approved, only its preview limits it. The caller has locked the
 * stack.
 */
export async function limitUpdate(tx: Queryable, updateId: string, created: CreatedUpdate): Promise<void> {
  const { caller, environment, kind, preview, stack } = created;
  if (stack.updateRules.isEmpty) return;
  const commit = commitOf(environment);
  const { organization } = stack;
  const object = formatStackRef(stack);
  const limitsIf = (isApproved: boolean): ChangeLimits | null =>
    changeLimitsOf(stack.updateRules, {
      ...{ organization, stack: object, kind, commit, isApproved },
      preview: preview?.previewId ? { rule: preview.rule, updateId: preview.previewId } : null,
    });
  const limits = limitsIf(false);
  if (!limits) return;
  const isApprovable = limits.changeLimit !== null || limits.protectedTypes.length > 0;
  const subject = commit === null || !isApprovable ? null : { stackId: stack.id, kind, commit };
  const approval =
    subject &&
    (await createApprovalRepository(tx).findValid(subject, caller, {
      byPeople: !mayTokensApprove(stack.updateRules),
    }));
  const left = approval ? limitsIf(true) : limits;
  if (left) await createChangeLimitRepository(tx).insert(updateId, left);
  if (!approval) return;
  const { approvedBy, id: approvalId, reason } = approval;
  const details = { stackId: stack.id, kind, commit, approvalId, approvedBy, reason };
  const event = { action: 'approval.use', organization, object, updateId, details } as const;
  await createAuditRepository(tx).insert(serverSource, event);
}
