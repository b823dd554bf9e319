import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Approval } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import { shortCommit } from '../update-status.ts';
import { approveDialogTexts } from './texts.tsx';

const times = [
  ['15', approveDialogTexts.fifteenMinutes],
  ['60', approveDialogTexts.anHour],
  ['240', approveDialogTexts.fourHours],
  ['1440', approveDialogTexts.aDay],
  ['10080', approveDialogTexts.aWeek],
] as const;

/** The audit log keeps the reason. */
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
  const give = useMutation(trpc.approvals.give.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={approveDialogTexts.title(shortCommit(commit))}
      description={approveDialogTexts.description(kind, project, stack, request)}
      action={approveDialogTexts.approve}
      isReady={reason.trim() !== ''}
      isPending={give.isPending}
      error={give.error}
      onClose={onClose}
      onSubmit={() =>
        give.mutate({ organization, project, stack, approvalId: id, reason: reason.trim(), minutes: Number(minutes) })
      }
    >
      <TextField
        label={approveDialogTexts.reason}
        hint={approveDialogTexts.reasonHint}
        required
        maxLength={200}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
      <SelectField
        label={approveDialogTexts.validFor}
        value={minutes}
        options={times}
        onChange={({ target }) => setMinutes(target.value)}
      />
    </ActionDialog>
  );
}
