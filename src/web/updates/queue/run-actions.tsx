import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { QueueItem } from '../../platform/app/contract.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { TextField } from '../../platform/ui/field.tsx';

type Way = 'evict' | 'drain' | 'cancel';

const texts = {
  evict: {
    title: 'Remove this run from the queue?',
    description:
      'Its pulumi command ends with an error that says so. It has changed nothing; the runs behind it move up.',
    action: 'Remove it',
    stay: 'Keep it waiting',
  },
  drain: {
    title: 'Drain this update?',
    description:
      'It starts no new steps. The steps in progress are finished and saved, and then the CLI ends the update.',
    action: 'Drain the update',
    stay: 'Keep it running',
  },
  cancel: {
    title: 'Cancel this update?',
    description:
      'The CLI loses its lock at once. Steps in progress may finish in the cloud without being saved; the stack then has pending operations.',
    action: 'Cancel the update',
    stay: 'Keep it running',
  },
} as const;

/** The actions on a run that holds a lock or waits for one. */
export function RunActions({ run }: { readonly run: QueueItem }) {
  const [asked, setAsked] = useState<Way | null>(null);
  const name = `${run.project}/${run.stack}`;
  return (
    <>
      {run.updateId === null ? (
        <Button size="small" aria-label={`Remove number ${run.position} of ${name}`} onClick={() => setAsked('evict')}>
          Remove
        </Button>
      ) : (
        <>
          <Button size="small" aria-label={`Drain ${name}`} onClick={() => setAsked('drain')}>
            Drain
          </Button>
          <Button size="small" aria-label={`Cancel ${name}`} onClick={() => setAsked('cancel')}>
            Cancel
          </Button>
        </>
      )}
      {asked === null ? null : <Ask run={run} way={asked} onClose={() => setAsked(null)} />}
    </>
  );
}

function Ask({ onClose, run, way }: { readonly run: QueueItem; readonly way: Way; readonly onClose: () => void }) {
  const [reason, setReason] = useState('');
  const onSuccess = async (): Promise<void> => {
    await queryClient.invalidateQueries({ queryKey: trpc.queue.list.pathKey() });
    onClose();
  };
  const evict = useMutation(trpc.queue.evict.mutationOptions({ onSuccess }));
  const drain = useMutation(trpc.updates.drain.mutationOptions({ onSuccess }));
  const cancel = useMutation(trpc.updates.cancel.mutationOptions({ onSuccess }));
  const { organization, placeId, project, stack, updateId } = run;
  const ref = { organization, project, stack };
  const given = reason.trim() === '' ? {} : { reason: reason.trim() };
  const mutation = { evict, drain, cancel }[way];
  const { title, ...text } = texts[way];
  return (
    <ActionDialog
      {...text}
      title={title}
      isDanger={way === 'cancel'}
      isPending={mutation.isPending}
      error={mutation.error}
      onClose={onClose}
      onSubmit={() => {
        if (way === 'evict' && placeId !== null) evict.mutate({ ...ref, placeId, ...given });
        if (way === 'drain' && updateId !== null) drain.mutate({ ...ref, updateId, ...given });
        if (way === 'cancel' && updateId !== null) cancel.mutate({ ...ref, updateId });
      }}
    >
      {way === 'cancel' ? null : (
        <TextField
          label="Reason"
          hint={way === 'drain' ? 'For the audit log. Optional.' : 'Its command prints it. Optional.'}
          value={reason}
          maxLength={200}
          onChange={({ target }) => setReason(target.value)}
        />
      )}
    </ActionDialog>
  );
}
