import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Approval } from '../../platform/app/contract.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import { shortCommit } from '../update-status.ts';

const times = [
  ['15', '15 minutes'],
  ['60', 'an hour'],
  ['240', '4 hours'],
  ['1440', 'a day'],
  ['10080', 'a week'],
] as const;

/** Approves a commit, with a reason that the audit log keeps. */
export function ApproveDialog({
  approval: { commit, id, kind, project, request, stack },
  onClose,
  organization,
}: {
  readonly organization: string;
  readonly approval: Pick<Approval, 'commit' | 'id' | 'kind' | 'project' | 'request' | 'stack'>;
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const [minutes, setMinutes] = useState('60');
  const give = useMutation(
    trpc.approvals.give.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries();
        onClose();
      },
    }),
  );
  return (
    <ActionDialog
      title={`Approve ${shortCommit(commit)}?`}
      description={`For a time, each ${kind} of ${project}/${stack} that runs this commit may exceed the change limits and protected types of the rules.${request === '' ? '' : ` Request: ${request}`}`}
      action="Approve"
      isReady={reason.trim() !== ''}
      isPending={give.isPending}
      error={give.error}
      onClose={onClose}
      onSubmit={() =>
        give.mutate({ organization, project, stack, approvalId: id, reason: reason.trim(), minutes: Number(minutes) })
      }
    >
      <TextField
        label="Reason"
        hint="Kept in the audit log."
        required
        maxLength={200}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      <SelectField
        label="Valid for"
        value={minutes}
        options={times}
        onChange={({ target }) => setMinutes(target.value)}
      />
    </ActionDialog>
  );
}
