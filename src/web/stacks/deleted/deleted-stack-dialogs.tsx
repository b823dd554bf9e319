import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { DeletedStack, StackRef } from '../../platform/app/contract.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { counted } from '../../platform/ui/counted.ts';
import { TextField } from '../../platform/ui/field.tsx';

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
  const restoring = useMutation(
    trpc.deletedStacks.restore.mutationOptions({
      onSuccess: async (restored) => {
        await queryClient.invalidateQueries();
        onRestored(restored);
      },
    }),
  );
  const resources = counted(resourceCount, 'resource');
  const state = version === 0 ? 'without a version' : `at version ${version} with ${resources}`;
  return (
    <ActionDialog
      title={`Restore ${project}/${stack}?`}
      description={`It is restored as it was, ${state}, with its history, tags and secrets. Grants and rules for its name apply to it again. Nothing changes in the cloud.`}
      action="Restore"
      isReady={name.trim() !== ''}
      isPending={restoring.isPending}
      error={restoring.error}
      typed={stack}
      onClose={onClose}
      onSubmit={() => restoring.mutate({ organization, id, stack: name.trim() })}
    >
      <TextField
        label="Name"
        hint={
          isNameTaken
            ? `Another stack is now named ${stack}. The state gets the new name, in a new version.`
            : 'Under another name, the state gets that name, in a new version.'
        }
        required
        maxLength={100}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
    </ActionDialog>
  );
}

/** Ends the time in which a stack can be restored. */
export function PurgeStackDialog({ onClose, organization, stack: { id, project, stack } }: Props) {
  const purging = useMutation(trpc.deletedStacks.purge.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={`Delete ${project}/${stack} for good?`}
      description="Its secrets can no longer be decrypted, and its states and history are deleted. After that, it can only be restored from a backup of the whole server."
      action="Delete for good"
      isDanger
      isPending={purging.isPending}
      error={purging.error}
      typed={stack}
      onClose={onClose}
      onSubmit={() => purging.mutate({ organization, id })}
    />
  );
}
