import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { QueueItem } from '../../platform/app/procedure-types.ts';
import { refresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { TextField } from '../../platform/ui/field.tsx';
import { viewKind } from '../update-status.ts';
import { queueTexts, runActionsTexts } from './texts.tsx';

export type Way = 'evict' | 'drain' | 'cancel';

const texts = runActionsTexts.dialogs;

export function RunActions({ onAsk, run }: { readonly run: QueueItem; readonly onAsk: (way: Way) => void }) {
  const name = `${run.project}/${run.stack}`;
  if (run.updateId === null) {
    return (
      <Button size="small" aria-label={runActionsTexts.removeNumber(run.position, name)} onClick={() => onAsk('evict')}>
        {runActionsTexts.remove}
      </Button>
    );
  }
  return (
    <>
      <Button size="small" aria-label={runActionsTexts.drainStack(name)} onClick={() => onAsk('drain')}>
        {runActionsTexts.drain}
      </Button>
      <Button size="small" aria-label={runActionsTexts.cancelStack(name)} onClick={() => onAsk('cancel')}>
        {runActionsTexts.cancel}
      </Button>
    </>
  );
}

/** The kind and the owner of a run. */
export function describeRun({ by, kind }: Pick<QueueItem, 'by' | 'kind'>): string {
  return queueTexts.runBy(kind === null ? queueTexts.run : viewKind({ kind }), by);
}

/** Names the run, because rows may move before the click. */
export function askAbout(run: Pick<QueueItem, 'by' | 'kind' | 'position' | 'project' | 'stack'>, way: Way) {
  const { description, title, ...text } = texts[way];
  return {
    ...text,
    title: title(`${run.project}/${run.stack}`, run.position),
    description: description(describeRun(run)),
  };
}

export function StopDialog({
  onClose,
  run,
  way,
}: {
  readonly run: QueueItem;
  readonly way: Way;
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const onSuccess = async (): Promise<void> => {
    await refresh(trpc.queue.list.pathKey());
    onClose();
  };
  const evict = useMutation(trpc.queue.evict.mutationOptions({ onSuccess }));
  const drain = useMutation(trpc.updates.drain.mutationOptions({ onSuccess }));
  const cancel = useMutation(trpc.updates.cancel.mutationOptions({ onSuccess }));
  const { organization, placeId, project, stack, updateId } = run;
  const ref = { organization, project, stack };
  const given = reason.trim() === '' ? {} : { reason: reason.trim() };
  const mutation = { evict, drain, cancel }[way];
  return (
    <ActionDialog
      {...askAbout(run, way)}
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
          label={runActionsTexts.reason}
          hint={way === 'drain' ? runActionsTexts.drainReasonHint : runActionsTexts.evictReasonHint}
          value={reason}
          maxLength={200}
          onChange={({ target }) => setReason(target.value)}
        />
      )}
    </ActionDialog>
  );
}
