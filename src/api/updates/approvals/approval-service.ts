import { type Permission, type PermissionSet, permits } from '../../../shared/access/permissions.ts';
import { permissionsOn } from '../../../shared/identity/locked-rights.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ForbiddenError, NotFoundError } from '../../../shared/platform/errors/errors.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import { formatStackRef, type StackRef } from '../../../shared/stacks/names.ts';
import { stackNotFound } from '../../../shared/stacks/stack-errors.ts';
import { createStackRepository, type StackRow } from '../../../shared/stacks/stack-repository.ts';
import { readTags } from '../../../shared/stacks/tags.ts';
import { type ApprovalRow, createApprovalRepository } from '../../../shared/updates/approvals/approval-repository.ts';
import { mayTokensApprove, parseApproval, parseKind } from '../../../shared/updates/approvals/approvals.ts';
import { parseCommit } from '../../../shared/updates/commit.ts';
import { parseReason } from '../../../shared/updates/reason.ts';
import { createUpdateRuleRepository } from '../../../shared/updates/rules/update-rule-repository.ts';
import { UpdateRules } from '../../../shared/updates/rules/update-rules.ts';
import { lockAccess } from '../../access/locked-access.ts';
import { assertPermission } from '../../access/stack-access.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { approvesNothing } from '../../platform/audit-trail/ci-runs.ts';
import type { Caller } from '../../platform/http/request.ts';

const maxListed = 100;

export type { ApprovalRow };

/** Approvals of commits whose runs delete or replace more than the rules of a stack allow. */
export class ApprovalService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** The most recently requested approvals first. */
  async list(ref: StackRef, { commit }: { readonly commit?: string | undefined }): Promise<readonly ApprovalRow[]> {
    const stack = await createStackRepository(this.#db).find(ref);
    if (!stack) throw stackNotFound(ref);
    return createApprovalRepository(this.#db).list(stack.id, maxListed, commit ?? null);
  }

  /** Requests an approval before a run is stopped. */
  async ask(
    ref: StackRef,
    caller: Caller,
    asked: { readonly commit: string; readonly kind: string; readonly reason: string },
    audit: AuditTrail,
  ): Promise<ApprovalRow> {
    const kind = parseKind(asked.kind);
    const commit = parseCommit(asked.commit);
    const request = parseReason(asked.reason);
    return this.#change(ref, caller, 'write', async (tx, stack) => {
      const approvals = createApprovalRepository(tx);
      const id = await approvals.ask({ stackId: stack.id, kind, commit }, caller, request);
      const details = { stackId: stack.id, approvalId: id, kind, commit, request };
      await audit.record(tx, { organization: ref.organization, object: formatStackRef(stack), details });
      return getApproval(tx, stack, id, caller);
    });
  }

  /**
   * Approves runs of the commit for a limited time. Refused for the requester (with any of their tokens), for tokens without a user unless
   * the rules allow them, and for CI runs.
   */
  async give(
    ref: StackRef,
    id: string,
    caller: Caller,
    given: { readonly reason: string; readonly minutes?: number | undefined },
    audit: AuditTrail,
  ): Promise<ApprovalRow> {
    const approval = parseApproval(given);
    return this.#change(ref, caller, 'admin', async (tx, stack) => {
      const approvals = createApprovalRepository(tx);
      const asked = await getApproval(tx, stack, id, caller);
      assertMayApprove(caller, asked, await createUpdateRuleRepository(tx).listOfStack(stack.id));
      await approvals.approve(id, caller, approval);
      const { commit, kind, updateId } = asked;
      const details = { stackId: stack.id, approvalId: id, kind, commit, ...approval };
      await audit.record(tx, { organization: ref.organization, object: formatStackRef(stack), updateId, details });
      return getApproval(tx, stack, id, caller);
    });
  }

  /**
   * Allowed for the requester and for admins of the stack, but not for CI runs. Running updates keep the limits with which they were
   * created.
   */
  async withdraw(ref: StackRef, id: string, caller: Caller, audit: AuditTrail): Promise<void> {
    await this.#change(ref, caller, 'write', async (tx, stack, held) => {
      const asked = await getApproval(tx, stack, id, caller);
      if (!mayWithdraw(caller, held, asked))
        throw new ForbiddenError(
          'Only the requester, or a user with the permission admin on the stack, can withdraw an approval',
        );
      await createApprovalRepository(tx).remove(id);
      const { approvedBy, askedBy, commit, kind, updateId } = asked;
      const details = { stackId: stack.id, approvalId: id, kind, commit, askedBy, approvedBy };
      await audit.record(tx, { organization: ref.organization, object: formatStackRef(stack), updateId, details });
    });
  }

  async #change<T>(
    ref: StackRef,
    caller: Caller,
    permission: Permission,
    work: (tx: Queryable, stack: StackRow, held: PermissionSet) => Promise<T>,
  ): Promise<T> {
    return this.#db.inTransaction(async (tx) => {
      const access = await lockAccess(tx, ref.organization, caller);
      const stack = await createStackRepository(tx).lock(ref);
      if (!stack) throw stackNotFound(ref);
      const tags = readTags(stack.tags);
      assertPermission(access, stack, tags, permission);
      return work(tx, stack, permissionsOn(access, { ...ref, tags }));
    });
  }
}

/** Null: the caller needs only the permission. */
export function refusalOf(
  { policyId, tokenId, tokenKind, userId }: Caller,
  asked: Pick<ApprovalRow, 'askedTokenId' | 'askedUserId' | 'isOwn'>,
  rules: UpdateRules = UpdateRules.none,
): string | null {
  if (policyId !== null) return approvesNothing;
  if (tokenKind !== 'personal' && !mayTokensApprove(rules)) return peopleApprove;
  if (hasAsked({ tokenId, userId }, asked)) return 'Another user has to approve this, because you have requested it';
  if (asked.isOwn)
    return 'Another user has to approve this, because it was requested by a token that you have created or rotated, or by a CI run that you have started';
  return null;
}

const peopleApprove =
  'Tokens of teams, organizations and services cannot approve, unless the rules of the stack have approvers=tokens: approve in the dashboard, or with a personal token';

export function mayWithdraw(
  caller: Pick<Caller, 'policyId' | 'tokenId' | 'userId'>,
  held: PermissionSet,
  asked: Pick<ApprovalRow, 'askedTokenId' | 'askedUserId'>,
): boolean {
  const isPerson = caller.policyId === null;
  return (isPerson && permits(held, 'admin')) || (permits(held, 'write') && hasAsked(caller, asked));
}

/** Whether the caller is the last requester. */
function hasAsked(
  { tokenId, userId }: Pick<Caller, 'tokenId' | 'userId'>,
  asked: Pick<ApprovalRow, 'askedTokenId' | 'askedUserId'>,
): boolean {
  return tokenId === asked.askedTokenId || (userId !== null && userId === asked.askedUserId);
}

function assertMayApprove(caller: Caller, asked: ApprovalRow, rules: UpdateRules): void {
  const refusal = refusalOf(caller, asked, rules);
  if (refusal !== null) throw new ForbiddenError(refusal);
}

async function getApproval(tx: Queryable, stack: StackRow, id: string, viewer: Caller): Promise<ApprovalRow> {
  const approval = isUuid(id) ? await createApprovalRepository(tx).lock(stack.id, id, viewer) : null;
  if (!approval) throw new NotFoundError(`There is no approval ${JSON.stringify(id.slice(0, 60))}`);
  return approval;
}
