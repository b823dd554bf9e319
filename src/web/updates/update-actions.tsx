import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { CirclePause, OctagonX } from 'lucide-react';
import { useId, useState } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/contract.ts';
import { usePageAction } from '../platform/app/page-actions.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { Dialog, DialogActions } from '../platform/ui/dialog.tsx';
import { AskButton } from './approvals/ask-approval.tsx';
import { updateActionsTexts } from './texts.tsx';
import styles from './update-actions.module.css';
import { isActive, neededPermission } from './update-status.ts';
import { WatchButton } from './watch/watch-button.tsx';

interface ActionProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
}

/** The user's actions on an update. Actions that would be refused are hidden. */
export function UpdateActions({ stack, update }: ActionProps) {
  const [asked, setAsked] = useState<'cancel' | 'drain' | null>(null);
  const details = useQuery(trpc.stacks.get.queryOptions(stack)).data;
  const permissions = details?.permissions ?? [];
  const mayStop = isActive(update) && permissions.includes(neededPermission(update));
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
      <StopDialog key={asked} stack={stack} update={update} way={asked} onClose={() => setAsked(null)} />
    </div>
  );
}

/** Whether a run of its commit may follow: a preview that has ended, of a working tree without changes. */
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
}: ActionProps & { readonly way: 'cancel' | 'drain' | null; readonly onClose: () => void }) {
  const reasonId = useId();
  const [reason, setReason] = useState('');
  const onSuccess = async (): Promise<void> => {
    await queryClient.invalidateQueries();
    onClose();
  };
  const cancel = useMutation(trpc.updates.cancel.mutationOptions({ onSuccess }));
  const drain = useMutation(trpc.updates.drain.mutationOptions({ onSuccess }));
  const text = texts[way ?? 'cancel'];
  const mutation = way === 'drain' ? drain : cancel;
  const send = (): void => {
    const given = reason.trim();
    if (way === 'cancel') cancel.mutate({ ...stack, updateId: update.updateId });
    else drain.mutate({ ...stack, updateId: update.updateId, ...(given === '' ? {} : { reason: given }) });
  };
  return (
    <Dialog title={text.title} description={text.description} isOpen={way !== null} onClose={onClose}>
      <form
        className={styles['form']}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        {way === 'drain' ? (
          <>
            <label htmlFor={reasonId} className={styles['label']}>
              {updateActionsTexts.reason(<span className={styles['optional']}>{updateActionsTexts.reasonNote}</span>)}
            </label>
            <input
              id={reasonId}
              className={styles['input']}
              value={reason}
              maxLength={200}
              onChange={(event) => setReason(event.target.value)}
            />
          </>
        ) : null}
        {mutation.error ? (
          <p className={styles['error']} role="alert">
            {mutation.error.message}
          </p>
        ) : null}
        <DialogActions>
          <Button onClick={onClose}>{updateActionsTexts.keepItRunning}</Button>
          <Button kind={way === 'drain' ? 'main' : 'danger'} type="submit" disabled={mutation.isPending}>
            {text.action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
