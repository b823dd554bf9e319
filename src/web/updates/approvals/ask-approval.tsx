import { useMutation } from '@tanstack/react-query';
import { ShieldQuestion } from 'lucide-react';
import { useState } from 'react';
import { usePageAction } from '../../platform/app/page-actions.ts';
import type { StackDetails, StackRef } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import { askApprovalTexts } from './texts.tsx';

const kinds = [
  ['update', 'pulumi up'],
  ['destroy', 'pulumi destroy'],
  ['refresh', 'pulumi refresh'],
] as const;

const whole = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/**
 * Requests an approval before a run is stopped, for users who may update a stack whose rules can stop it. `run`: the run, if known;
 * renders nothing if the full commit of the run is unknown.
 */
export function AskButton({
  details,
  run,
  stack,
}: {
  readonly stack: StackRef;
  readonly details: Pick<StackDetails, 'hasApprovals' | 'permissions'>;
  readonly run?: { readonly commit: string | null; readonly kind: string };
}) {
  const [isAsked, setIsAsked] = useState(false);
  const isKnown = run === undefined || (run.commit !== null && whole.test(run.commit));
  const mayAsk = details.hasApprovals && details.permissions.includes('write') && isKnown;
  usePageAction(askApprovalTexts.requestApproval, mayAsk ? () => setIsAsked(true) : null);
  return (
    <>
      {mayAsk ? (
        <Button size="small" onClick={() => setIsAsked(true)}>
          <ShieldQuestion size={14} aria-hidden="true" />
          {askApprovalTexts.requestApproval}
        </Button>
      ) : null}
      {isAsked ? (
        <AskDialog
          stack={stack}
          commit={run?.commit ?? ''}
          kind={run?.kind ?? 'update'}
          onClose={() => setIsAsked(false)}
        />
      ) : null}
    </>
  );
}

function AskDialog({
  onClose,
  stack,
  ...first
}: {
  readonly stack: StackRef;
  readonly commit: string;
  readonly kind: string;
  readonly onClose: () => void;
}) {
  const [commit, setCommit] = useState(first.commit);
  const [kind, setKind] = useState(first.kind);
  const [reason, setReason] = useState('');
  const ask = useMutation(trpc.approvals.ask.mutationOptions(thenRefresh(onClose)));
  const name = commit.trim().toLowerCase();
  return (
    <ActionDialog
      title={askApprovalTexts.title}
      description={askApprovalTexts.description(stack.project, stack.stack)}
      action={askApprovalTexts.requestApproval}
      isReady={whole.test(name)}
      isPending={ask.isPending}
      error={ask.error}
      onClose={onClose}
      onSubmit={() => ask.mutate({ ...stack, commit: name, kind, reason: reason.trim() })}
    >
      <TextField
        label={askApprovalTexts.commit}
        hint={askApprovalTexts.commitHint}
        required
        maxLength={64}
        value={commit}
        onChange={({ target }) => setCommit(target.value)}
      />
      <SelectField
        label={askApprovalTexts.for}
        value={kind}
        options={kinds}
        onChange={({ target }) => setKind(target.value)}
      />
      <TextField
        label={askApprovalTexts.reason}
        hint={askApprovalTexts.reasonHint}
        maxLength={200}
        value={reason}
        onChange={({ target }) => setReason(target.value)}
      />
    </ActionDialog>
  );
}
