import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { QueueItem } from '../platform/app/contract.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { TextField } from '../platform/ui/field.tsx';

type Way = 'send-away' | 'drain' | 'cancel';

const texts = {
  'send-away': {
    title: 'Send this run away?',
    description: 'Its pulumi command ends with an error that says so. It has changed nothing; those behind it move up.',
    action: 'Send it away',
    stay: 'Let it wait',
  },
  drain: {
    title: 'Drain this update?',
    description: 'It begins nothing more. What it has begun is finished and saved, and then the CLI ends it.',
    action: 'Drain the update',
    stay: 'Keep it running',
  },
  cancel: {
    title: 'Cancel this update?',
    description:
      'The CLI loses its lock at once. Steps that it has begun may finish in the cloud without being saved; the stack then has pending operations.',
    action: 'Cancel the update',
    stay: 'Keep it running',
  },
} as const;

/** What may be done with a run that holds a stack or waits for one. */
export function RunActions({ run }: { readonly run: QueueItem }) {
  const [asked, setAsked] = useState<Way | null>(null);
  const name = `${run.project}/${run.stack}`;
  return (
    <>
      {run.updateId === null ? (
        <Button
          size="small"
          aria-label={`Send away number ${run.position} of ${name}`}
          onClick={() => setAsked('send-away')}
        >
          Send away
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
  const sendAway = useMutation(trpc.ci.sendAway.mutationOptions({ onSuccess }));
  const drain = useMutation(trpc.updates.drain.mutationOptions({ onSuccess }));
  const cancel = useMutation(trpc.updates.cancel.mutationOptions({ onSuccess }));
  const { organization, placeId, project, stack, updateId } = run;
  const ref = { organization, project, stack };
  const given = reason.trim() === '' ? {} : { reason: reason.trim() };
  const mutation = { 'send-away': sendAway, drain, cancel }[way];
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
        if (way === 'send-away' && placeId !== null) sendAway.mutate({ ...ref, placeId, ...given });
        if (way === 'drain' && updateId !== null) drain.mutate({ ...ref, updateId, ...given });
        if (way === 'cancel' && updateId !== null) cancel.mutate({ ...ref, updateId });
      }}
    >
      {way === 'cancel' ? null : (
        <TextField
          label="Reason"
          hint={way === 'drain' ? 'For the audit log, may be empty' : 'Its command prints it; may be empty'}
          value={reason}
          maxLength={200}
          onChange={({ target }) => setReason(target.value)}
        />
      )}
    </ActionDialog>
  );
}
