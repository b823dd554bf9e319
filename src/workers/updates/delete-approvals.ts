import type { AppContext } from '../../shared/context.ts';
import { createApprovalRepository } from '../../shared/updates/approvals/approval-repository.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';

const approvalDays = 100;
const approvalsAtOnce = 500;

/** Deletes approvals that expired, and requests that were never approved, after a long time. */
export async function deleteOldApprovals({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const approvals = createApprovalRepository(db);
  return untilNoneLeft(approvalsAtOnce, signal, (limit) => approvals.deleteOld(approvalDays, limit));
}
