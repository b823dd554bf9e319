import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CirclePause, OctagonX } from 'lucide-react';
import { useState } from 'react';
import { usePageAction } from '../platform/app/page-actions.ts';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { AskButton } from './approvals/ask-approval.tsx';
import { updateActionsTexts } from './texts.tsx';
import styles from './update-actions.module.css';
import { isActive } from './update-status.ts';
import { WatchButton } from './watch/watch-button.tsx';

interface ActionProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
}

/** Actions that would be refused are hidden. */
export function UpdateActions({ stack, update }: ActionProps) {
  const [asked, setAsked] = useState<'cancel' | 'drain' | null>(null);
  const details = useQuery(trpc.stacks.get.queryOptions(stack)).data;
  const permissions = details?.permissions ?? [];
  const mayStop = isActive(update) && permissions.includes(update.permission);
  // Draining has no effect on an update that saves no state.
  const mayDrain = mayStop && !update.dryRun && update.status === 'running';
  usePageAction(updateActionsTexts.cancelThisUpdate, mayStop ? () => setAsked('cancel') : null);
  usePageAction(updateActionsTexts.drainThisUpdate, mayDrain ? () => setAsked('drain') : null);
  return (
    <div className={styles['actions']}>
      {update.preview === null ? null : (
        <Link
          to="/$organization/$project/$stack/previews/$updateId"
          params={{ ...stack, updateId: update.preview }}
          className={buttonClass({ kind: 'plain', size: 'small' })}
        >
          {updateActionsTexts.viewPreview}
        </Link>
      )}
      {details === undefined || !isAskable(update) ? null : (
        <AskButton
          stack={stack}
          details={details}
          run={{ commit: update.commit, kind: update.kind === 'preview' ? 'update' : update.kind }}
        />
      )}
      {isActive(update) ? <WatchButton stack={stack} updateId={update.updateId} /> : null}
      {mayDrain ? (
        <Button size="small" onClick={() => setAsked('drain')}>
          <CirclePause size={15} aria-hidden="true" />
          {updateActionsTexts.drain}
        </Button>
      ) : null}
      {mayStop ? (
        <Button size="small" kind="danger" onClick={() => setAsked('cancel')}>
          <OctagonX size={15} aria-hidden="true" />
          {updateActionsTexts.cancel}
        </Button>
      ) : null}
      {asked === null ? null : <StopDialog stack={stack} update={update} way={asked} onClose={() => setAsked(null)} />}
    </div>
  );
}

/** Whether an approval for its commit makes sense: after a preview that has ended, without uncommitted changes. */
function isAskable({ dryRun, environment, kind, status }: UpdateDetails): boolean {
  const isClean = environment?.['git.dirty'] !== 'true';
  return dryRun && isClean && status === 'succeeded' && ['preview', 'update', 'destroy', 'refresh'].includes(kind);
}

const texts = updateActionsTexts.dialogs;

function StopDialog({
  onClose,
  stack,
  update,
  way,
}: ActionProps & { readonly way: 'cancel' | 'drain'; readonly onClose: () => void }) {
  const [reason, setReason] = useState('');
  const options = thenRefresh(onClose);
  const cancel = useMutation(trpc.updates.cancel.mutationOptions(options));
  const drain = useMutation(trpc.updates.drain.mutationOptions(options));
  const { error, isPending } = way === 'drain' ? drain : cancel;
  const send = (): void => {
    const given = reason.trim();
    if (way === 'cancel') cancel.mutate({ ...stack, updateId: update.updateId });
    else drain.mutate({ ...stack, updateId: update.updateId, ...(given === '' ? {} : { reason: given }) });
  };
  return (
    <ActionDialog
      {...texts[way]}
      title={texts[way].title(`${stack.project}/${stack.stack}`)}
      stay={updateActionsTexts.keepItRunning}
      isDanger={way === 'cancel'}
      isPending={isPending}
      error={error}
      onClose={onClose}
      onSubmit={send}
    >
      {way === 'drain' ? (
        <TextField
          label={updateActionsTexts.reason(<span className={styles['optional']}>{updateActionsTexts.reasonNote}</span>)}
          value={reason}
          maxLength={200}
          onChange={({ target }) => setReason(target.value)}
        />
      ) : null}
    </ActionDialog>
  );
}
