import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { LegalHold as Hold, StackRef } from '../platform/app/procedure-types.ts';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';
import { useRemoval } from '../platform/app/use-edit.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { TextField } from '../platform/ui/field.tsx';
import { Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { legalHoldTexts } from './stack/texts.tsx';

export function LegalHold({ mayManage, stack }: { readonly stack: StackRef; readonly mayManage: boolean }) {
  const { organization, project, stack: name } = stack;
  const ref = { organization, project, stack: name };
  /** As of the opening of the dialog: others may place or release a hold meanwhile. */
  const [asked, setAsked] = useState<{ readonly hold: Hold | null } | null>(null);
  const query = useQuery(trpc.retention.findHold.queryOptions(ref));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const held = query.data ?? null;
  const close = () => setAsked(null);
  return (
    <Section
      title={legalHoldTexts.title}
      lead={legalHoldTexts.lead}
      actions={
        mayManage ? (
          <Button disabled={query.data === undefined} onClick={() => setAsked({ hold: held })}>
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
        <p>{textOf(held)}</p>
      )}
      {asked === null ? null : asked.hold === null ? (
        <PlaceDialog stack={ref} onClose={close} />
      ) : (
        <ReleaseDialog stack={ref} hold={asked.hold} onClose={close} />
      )}
    </Section>
  );
}

function textOf({ at, by, reason }: Hold) {
  return legalHoldTexts.held(reason, by, <Time at={at} />);
}

interface DialogProps {
  readonly stack: StackRef;
  readonly onClose: () => void;
}

function PlaceDialog({ onClose, stack }: DialogProps) {
  const [reason, setReason] = useState('');
  const place = useMutation(trpc.retention.hold.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={legalHoldTexts.placeTitle}
      description={legalHoldTexts.placeLead}
      action={legalHoldTexts.place}
      isReady={reason.trim() !== ''}
      isPending={place.isPending}
      error={place.error}
      onClose={onClose}
      onSubmit={() => place.mutate({ ...stack, reason })}
    >
      <TextField
        label={legalHoldTexts.reason}
        value={reason}
        maxLength={500}
        onChange={({ target }) => setReason(target.value)}
      />
    </ActionDialog>
  );
}

function ReleaseDialog({ hold, onClose, stack }: DialogProps & { readonly hold: Hold }) {
  const { dialog, item } = useRemoval<Hold | null>({
    item: hold,
    read: () => apiClient.retention.findHold.query(stack),
  });
  const release = useMutation(trpc.retention.release.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={legalHoldTexts.releaseTitle}
      description={legalHoldTexts.releaseLead}
      action={legalHoldTexts.release}
      isDanger
      isReady={item !== null}
      {...dialog(release)}
      onClose={onClose}
      onSubmit={() => release.mutate(item === null ? stack : { ...stack, revision: item.revision })}
    >
      <p>{item === null ? legalHoldTexts.none : textOf(item)}</p>
    </ActionDialog>
  );
}
