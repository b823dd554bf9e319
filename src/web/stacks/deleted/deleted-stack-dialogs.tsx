import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { DeletedStack, StackRef } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';

import { TextField } from '../../platform/ui/field.tsx';
import { purgeStackTexts, restoreStackTexts } from './texts.tsx';

interface Props {
  readonly organization: string;
  readonly stack: DeletedStack;
  readonly onClose: () => void;
}

/** Restores a deleted stack, under another name if its own is taken. */
export function RestoreStackDialog({
  onClose,
  onRestored,
  organization,
  stack: { id, isNameTaken, project, resourceCount, stack, version },
}: Props & { readonly onRestored: (restored: StackRef) => void }) {
  const [name, setName] = useState(isNameTaken ? `${stack}-restored` : stack);
  const restoring = useMutation(trpc.deletedStacks.restore.mutationOptions(thenRefresh()));
  const state = version === 0 ? restoreStackTexts.withoutVersion : restoreStackTexts.version(version, resourceCount);
  return (
    <ActionDialog
      title={restoreStackTexts.title(`${project}/${stack}`)}
      description={restoreStackTexts.lead(state)}
      action={restoreStackTexts.action}
      isReady={name.trim() !== ''}
      isPending={restoring.isPending}
      error={restoring.error}
      typed={stack}
      onClose={onClose}
      onSubmit={() => restoring.mutate({ organization, id, stack: name.trim() }, { onSuccess: onRestored })}
    >
      <TextField
        label={restoreStackTexts.name}
        hint={isNameTaken ? restoreStackTexts.nameTaken(stack) : restoreStackTexts.nameHint}
        required
        maxLength={100}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
    </ActionDialog>
  );
}

export function PurgeStackDialog({ onClose, organization, stack: { id, project, stack } }: Props) {
  const purging = useMutation(trpc.deletedStacks.purge.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={purgeStackTexts.title(`${project}/${stack}`)}
      description={purgeStackTexts.lead}
      action={purgeStackTexts.action}
      isDanger
      isPending={purging.isPending}
      error={purging.error}
      typed={stack}
      onClose={onClose}
      onSubmit={() => purging.mutate({ organization, id })}
    />
  );
}
