import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { PendingStep, PendingSteps, StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { SelectField, TextField } from '../platform/ui/field.tsx';
import { HaltNote } from '../platform/ui/halt-note.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { CommitLink } from '../updates/commit-link.tsx';
import { viewEndReason, viewKind, viewStatus } from '../updates/update-status.ts';
import { type Choice, chosenRepairs, isComplete, settlingCommands, undecided } from './pending-choices.ts';
import styles from './pending-repair.module.css';
import { pendingTexts } from './stack/texts.tsx';

/** Operations that an interrupted update left unfinished, and how to resolve them: with the CLI, or here as a new version. */
export function PendingRepair({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const query = useQuery(trpc.stacks.pending.queryOptions(stack));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const { items, leftBy } = query.data;
  const isRunning = details.active !== null;
  return (
    <>
      {isRunning ? (
        <Empty title={pendingTexts.running}>
          <p>{pendingTexts.runningHint}</p>
          {/* The note beside the choices is hidden with them, so it is shown here, too. */}
          {items.length === 0 ? null : <HaltNote className={styles['error']} />}
        </Empty>
      ) : items.length === 0 ? (
        <Empty title={query.data.isKnown ? pendingTexts.none : pendingTexts.notReadable}>
          <p>{pendingTexts.noneHint}</p>
        </Empty>
      ) : null}
      {/* An update that changes nothing keeps the choices. */}
      {items.length === 0 ? null : (
        <div hidden={isRunning}>
          <div className={styles['page']}>
            {leftBy === null ? null : <LeftBy stack={stack} update={leftBy} />}
            {/* The choices apply to this version only. */}
            <Repair
              key={query.data.headVersion}
              stack={stack}
              pending={query.data}
              mayWrite={details.permissions.includes('write')}
            />
          </div>
        </div>
      )}
    </>
  );
}

function LeftBy({ stack, update }: { readonly stack: StackRef; readonly update: NonNullable<PendingSteps['leftBy']> }) {
  const endReason = viewEndReason(update.endReason);
  return (
    <section className={styles['section']}>
      <h2>{pendingTexts.whatHappened}</h2>
      <p>
        {pendingTexts.ended({
          update:
            update.version === null ? (
              viewKind(update)
            ) : (
              <Link
                to="/$organization/$project/$stack/updates/$version"
                params={{ ...stack, version: String(update.version) }}
              >
                {viewKind(update)} {update.version}
              </Link>
            ),
          by: update.by,
          status: viewStatus(update.status).word.toLowerCase(),
          at: update.endedAt === null ? null : <Time at={update.endedAt} />,
          reason: endReason,
        })}
      </p>
      {update.commit === null && update.ciUrl === null ? null : (
        <p className={styles['meta']}>
          {update.commit === null ? null : <CommitLink commit={update.commit} stack={stack} />}
          {update.ciUrl === null ? null : <ExternalLink href={update.ciUrl}>{pendingTexts.ciRun}</ExternalLink>}
        </p>
      )}
    </section>
  );
}

function Repair({
  mayWrite,
  pending,
  stack,
}: {
  readonly stack: StackRef;
  readonly pending: PendingSteps;
  readonly mayWrite: boolean;
}) {
  const { headVersion, isCut, items } = pending;
  const [choices, setChoices] = useState<Readonly<Record<number, Choice>>>({});
  const [isAsking, setIsAsking] = useState(false);
  const repairing = useMutation(
    trpc.stacks.repair.mutationOptions({
      onSuccess: () => {
        setIsAsking(false);
        for (const changed of [trpc.stacks, trpc.versions, trpc.updates, trpc.resources])
          void queryClient.invalidateQueries({ queryKey: changed.pathKey() });
      },
    }),
  );
  const repairs = chosenRepairs(items, choices);
  const cleared = repairs.filter(({ repair }) => repair.action === 'clear').length;
  const imported = repairs.length - cleared;
  const mayRepair = mayWrite && !isCut;
  const name = `${stack.organization}/${stack.project}/${stack.stack}`;
  return (
    <>
      <section className={styles['section']} data-draft={repairs.length === 0 ? undefined : ''}>
        <h2>{pendingTexts.operations}</h2>
        <p className={styles['lead']}>{pendingTexts.lead}</p>
        <ul className={styles['steps']} aria-label={pendingTexts.operations}>
          {items.map((step, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a repair refers to the position in the list.
            <li key={index} className={styles['step']}>
              <StepName step={step} />
              {mayRepair ? (
                <StepChoice
                  step={step}
                  choice={choices[index] ?? undecided}
                  onChange={(choice) => setChoices((before) => ({ ...before, [index]: choice }))}
                />
              ) : null}
            </li>
          ))}
        </ul>
        {isCut ? <p className={styles['lead']}>{pendingTexts.more}</p> : null}
        {isAsking ? null : <HaltNote className={styles['error']} />}
        {mayRepair ? (
          <Button
            kind="main"
            disabled={repairs.length === 0 || !isComplete(items, choices)}
            onClick={() => {
              repairing.reset();
              setIsAsking(true);
            }}
          >
            {pendingTexts.save}
          </Button>
        ) : null}
      </section>
      <section className={styles['section']}>
        <h2>{pendingTexts.byCli}</h2>
        <p className={styles['lead']}>{pendingTexts.byCliLead}</p>
        {settlingCommands(items, name).map((command) => (
          <Code key={command}>{command}</Code>
        ))}
      </section>
      {isAsking ? (
        <ActionDialog
          title={pendingTexts.save}
          description={pendingTexts.saveLead(headVersion)}
          action={pendingTexts.saveAs(headVersion + 1)}
          isPending={repairing.isPending}
          error={repairing.error}
          onClose={() => setIsAsking(false)}
          onSubmit={() => repairing.mutate({ ...stack, headVersion, repairs })}
        >
          <p>
            {cleared === 0 ? null : `${pendingTexts.discarded(cleared)} `}
            {imported === 0 ? null : `${pendingTexts.imported(imported)} `}
            {pendingTexts.nothingChanges}
          </p>
        </ActionDialog>
      ) : null}
    </>
  );
}

const words: Readonly<Record<string, string>> = {
  creating: pendingTexts.wasCreated,
  updating: pendingTexts.wasUpdated,
  deleting: pendingTexts.wasDeleted,
  reading: pendingTexts.wasRead,
  importing: pendingTexts.wasImported,
};

function StepName({ step }: { readonly step: PendingStep }) {
  return (
    <div className={styles['names']} title={step.urn}>
      <p>
        <span className={styles['name']}>{nameInUrn(step.urn)}</span>{' '}
        <span className={styles['meta']}>{words[step.operation] ?? step.operation}</span>
      </p>
      <p className={styles['meta']}>
        {shortType(step.type)}
        {step.id === null ? null : <code>{step.id}</code>}
      </p>
    </div>
  );
}

function StepChoice({
  choice,
  onChange,
  step,
}: {
  readonly step: PendingStep;
  readonly choice: Choice;
  readonly onChange: (choice: Choice) => void;
}) {
  const name = nameInUrn(step.urn);
  return (
    <div className={styles['choice']}>
      <SelectField
        label={pendingTexts.decisionAbout(name)}
        isLabelUnseen
        value={choice.action}
        onChange={({ target }) => onChange({ ...choice, action: target.value as Choice['action'] })}
        options={[
          ['keep', pendingTexts.decideLater],
          ['clear', step.operation === 'creating' ? pendingTexts.notCreated : pendingTexts.discard],
          ...(step.isImportable ? [['import', pendingTexts.createdAdd] as const] : []),
        ]}
      />
      {choice.action === 'import' ? (
        <TextField
          label={pendingTexts.idOf(name)}
          isLabelUnseen
          placeholder={pendingTexts.idInCloud}
          value={choice.id}
          onChange={({ target }) => onChange({ ...choice, id: target.value })}
        />
      ) : null}
    </div>
  );
}
