import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ShieldQuestion } from 'lucide-react';
import { useState } from 'react';
import { usePageAction } from '../../platform/app/page-actions.ts';
import type { Approval, StackRef } from '../../platform/app/procedure-types.ts';
import { every, trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Notice } from '../../platform/ui/notice.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { shortCommit } from '../update-status.ts';
import { ApprovalLinks } from './approval-table.tsx';
import { ApproveDialog } from './approve-dialog.tsx';
import { approvalNoticeTexts } from './texts.tsx';
import { WithdrawDialog } from './withdraw-dialog.tsx';

const pollMs = 10_000;
const maxListed = 3;
/** Older requests appear only on the page of approvals. In ms. */
const maxAgeMs = 7 * 24 * 3_600_000;

/** Pending approvals of a stack, or of a commit. A page that requests them immediately gets them in the same request as the stack. */
export function useAskedApprovals({ organization, project, stack }: StackRef, commit?: string) {
  const of = commit === undefined ? {} : { commit };
  const input = { organization, project, stack, ...of, given: false, limit: maxListed };
  return useQuery(trpc.approvals.ofStack.queryOptions(input, { refetchInterval: every(pollMs) }));
}

/** Requested by runs of this stack, or by one commit. */
export function ApprovalNotice({ commit, stack }: { readonly stack: StackRef; readonly commit?: string }) {
  const query = useAskedApprovals(stack, commit);
  const [chosen, setChosen] = useState<Approval | null>(null);
  const [withdrawn, setWithdrawn] = useState<Approval | null>(null);
  const isShown = ({ askedAt }: Approval): boolean => Date.now() - Date.parse(askedAt) < maxAgeMs;
  const asked = query.data?.items.filter(isShown) ?? [];
  const first = asked.find(({ mayGive }) => mayGive);
  usePageAction(approvalNoticeTexts.approveTheRun, first === undefined ? null : () => setChosen(first));
  return (
    <>
      {asked.map((approval) => (
        <Notice
          key={approval.id}
          tone="warning"
          icon={<ShieldQuestion size={17} />}
          title={approvalNoticeTexts.requestedBy(
            <code title={approval.commit}>{shortCommit(approval.commit)}</code>,
            approval.askedBy,
            <Time at={approval.askedAt} />,
          )}
          action={
            <>
              <ApprovalLinks organization={stack.organization} approval={approval} />
              {approval.mayWithdraw ? (
                <Button size="small" kind="quiet" onClick={() => setWithdrawn(approval)}>
                  {approvalNoticeTexts.withdraw}
                </Button>
              ) : null}
              {approval.mayGive ? (
                <Button size="small" onClick={() => setChosen(approval)}>
                  {approvalNoticeTexts.approve}
                </Button>
              ) : null}
            </>
          }
        >
          {approval.request === '' ? null : <p>{approval.request}</p>}
          {approval.refusal === null ? null : <p>{approval.refusal}.</p>}
          {approval.mayGive ? null : <p>{approvalNoticeTexts.whoMayApprove}</p>}
        </Notice>
      ))}
      {asked.length === maxListed && query.data?.next != null ? (
        <p>
          <Link to="/$organization/~/approvals" params={{ organization: stack.organization }}>
            {approvalNoticeTexts.more}
          </Link>
        </p>
      ) : null}
      {chosen === null ? null : (
        <ApproveDialog organization={stack.organization} approval={chosen} onClose={() => setChosen(null)} />
      )}
      {withdrawn === null ? null : (
        <WithdrawDialog organization={stack.organization} approval={withdrawn} onClose={() => setWithdrawn(null)} />
      )}
    </>
  );
}
