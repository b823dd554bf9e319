import { useMutation } from '@tanstack/react-query';
import type { Approval } from '../../platform/app/contract.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { shortCommit } from '../update-status.ts';

/** Whether there is something to take back: a request, or an approval that is valid. */
export function isWithdrawable({ approvedAt, isValid, mayWithdraw }: Approval): boolean {
  return mayWithdraw && (approvedAt === null || isValid);
}

/** What the button is called. */
export function withdrawWord({ approvedAt }: Approval): string {
  return approvedAt === null ? 'Withdraw' : 'Take back';
}

/** Takes an approval back, or the request for it. */
export function WithdrawDialog({
  approval,
  onClose,
  organization,
}: {
  readonly organization: string;
  readonly approval: Approval;
  readonly onClose: () => void;
}) {
  const { approvedAt, commit, id, kind, project, stack } = approval;
  const withdraw = useMutation(trpc.approvals.withdraw.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={approvedAt === null ? 'Withdraw the request?' : 'Take the approval back?'}
      description={
        approvedAt === null
          ? `Nobody can approve ${shortCommit(commit)} for ${project}/${stack} then. A run that is stopped asks anew.`
          : `From now on, each ${kind} of ${project}/${stack} that runs ${shortCommit(commit)} is held to the rules again. One that runs already goes on.`
      }
      action={withdrawWord(approval)}
      stay="Keep it"
      isDanger={approvedAt !== null}
      isPending={withdraw.isPending}
      error={withdraw.error}
      onClose={onClose}
      onSubmit={() => withdraw.mutate({ organization, project, stack, approvalId: id })}
    />
  );
}
