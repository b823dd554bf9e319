import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { StackRef } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { legalHoldTexts } from './stack/texts.tsx';

/** Whether nothing of a stack may be deleted, and why. */
export function LegalHold({ mayManage, stack }: { readonly stack: StackRef; readonly mayManage: boolean }) {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  const [isOpen, setIsOpen] = useState(false);
  const [reason, setReason] = useState('');
  const query = useQuery(trpc.retention.findHold.queryOptions(ref));
  const done = thenRefresh(() => setIsOpen(false));
  const hold = useMutation(trpc.retention.hold.mutationOptions(done));
  const release = useMutation(trpc.retention.release.mutationOptions(done));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const held = query.data ?? null;
  const change = held === null ? hold : release;
  return (
    <Section
      title={legalHoldTexts.title}
      lead={legalHoldTexts.lead}
      actions={
        mayManage ? (
          <Button onClick={() => setIsOpen(true)}>
            {held === null ? legalHoldTexts.place : legalHoldTexts.release}
          </Button>
        ) : undefined
      }
    >
      {query.data === undefined ? (
        <Skeleton width={240} />
      ) : held === null ? (
        <p>{legalHoldTexts.none}</p>
      ) : (
        <p>{legalHoldTexts.held(held.reason, held.by, <Time at={held.at} />)}</p>
      )}
      {isOpen ? (
        <ActionDialog
          title={held === null ? legalHoldTexts.placeTitle : legalHoldTexts.releaseTitle}
          description={held === null ? legalHoldTexts.placeLead : legalHoldTexts.releaseLead}
          action={held === null ? legalHoldTexts.place : legalHoldTexts.release}
          isDanger={held !== null}
          isReady={held !== null || reason.trim() !== ''}
          isPending={change.isPending}
          error={change.error}
          onClose={() => setIsOpen(false)}
          onSubmit={() => (held === null ? hold.mutate({ ...ref, reason }) : release.mutate(ref))}
        >
          {held === null ? (
            <TextField
              label={legalHoldTexts.reason}
              value={reason}
              maxLength={500}
              onChange={({ target }) => setReason(target.value)}
            />
          ) : null}
        </ActionDialog>
      ) : null}
    </Section>
  );
}
