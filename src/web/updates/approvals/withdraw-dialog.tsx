import { useMutation } from '@tanstack/react-query';
import type { Approval } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { shortCommit } from '../update-status.ts';
import { withdrawDialogTexts } from './texts.tsx';

/** Only a request or a valid approval can be withdrawn. */
export function isWithdrawable({ approvedAt, isValid, mayWithdraw }: Approval): boolean {
  return mayWithdraw && (approvedAt === null || isValid);
}

export function withdrawWord({ approvedAt }: Approval): string {
  return approvedAt === null ? withdrawDialogTexts.withdraw : withdrawDialogTexts.revoke;
}

/** Withdraws an approval, or the request for it. */
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
      title={approvedAt === null ? withdrawDialogTexts.withdrawTheRequest : withdrawDialogTexts.revokeTheApproval}
      description={
        approvedAt === null
          ? withdrawDialogTexts.withdrawal(shortCommit(commit), project, stack)
          : withdrawDialogTexts.revocation(kind, project, stack, shortCommit(commit))
      }
      action={withdrawWord(approval)}
      stay={withdrawDialogTexts.keepIt}
      isDanger={approvedAt !== null}
      isPending={withdraw.isPending}
      error={withdraw.error}
      onClose={onClose}
      onSubmit={() => withdraw.mutate({ organization, project, stack, approvalId: id })}
    />
  );
}
