import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { PendingStep, PendingSteps, StackDetails, StackRef } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { Button } from '../platform/ui/button.tsx';
import { Code } from '../platform/ui/code.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { SelectField, TextField } from '../platform/ui/field.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { CommitLink } from '../updates/commit-link.tsx';
import { viewEndReason, viewKind, viewStatus } from '../updates/update-status.ts';
import { type Choice, chosenRepairs, isComplete, settlingCommands } from './pending-choices.ts';
import styles from './pending-repair.module.css';

/** Operations that an interrupted update left, and how to resolve them: with the CLI, or here as a new version. */
export function PendingRepair({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const query = useQuery(trpc.stacks.pending.queryOptions(stack));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const { items, leftBy } = query.data;
  if (details.active !== null)
    return (
      <Empty title="An update is running">
        <p>Interrupted operations can be repaired after it ends.</p>
      </Empty>
    );
  if (items.length === 0)
    return (
      <Empty title={query.data.isKnown ? 'No interrupted operations' : 'The state cannot be read at the moment'}>
        <p>If an update ends while it changes resources, they are listed here with the options to continue.</p>
      </Empty>
    );
  return (
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
  );
}

function LeftBy({ stack, update }: { readonly stack: StackRef; readonly update: NonNullable<PendingSteps['leftBy']> }) {
  const endReason = viewEndReason(update.endReason);
  return (
    <section className={styles['section']}>
      <h2>What happened</h2>
      <p>
        {update.version === null ? (
          viewKind(update)
        ) : (
          <Link
            to="/$organization/$project/$stack/updates/$version"
            params={{ ...stack, version: String(update.version) }}
          >
            {viewKind(update)} {update.version}
          </Link>
        )}
        {update.by === null ? '' : ` by ${update.by}`} ended as {viewStatus(update.status).word.toLowerCase()}
        {update.endedAt === null ? null : (
          <>
            {' '}
            <Time at={update.endedAt} />
          </>
        )}
        .{endReason === null ? '' : ` ${endReason}.`}
      </p>
      {update.commit === null && update.ciUrl === null ? null : (
        <p className={styles['meta']}>
          {update.commit === null ? null : <CommitLink commit={update.commit} stack={stack} />}
          {update.ciUrl === null ? null : <ExternalLink href={update.ciUrl}>View CI run</ExternalLink>}
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
      <section className={styles['section']}>
        <h2>Interrupted operations</h2>
        <p className={styles['lead']}>
          Check in the cloud whether each was completed. Only creations need a decision. The next refresh resolves the
          others.
        </p>
        <ul className={styles['steps']} aria-label="Interrupted operations">
          {items.map((step, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a repair refers to the position in the list.
            <li key={index} className={styles['step']}>
              <StepName step={step} />
              {mayRepair ? (
                <StepChoice
                  step={step}
                  choice={choices[index] ?? { action: 'keep', id: '' }}
                  onChange={(choice) => setChoices((before) => ({ ...before, [index]: choice }))}
                />
              ) : null}
            </li>
          ))}
        </ul>
        {isCut ? <p className={styles['lead']}>There are more than can be shown. Repair them with the CLI.</p> : null}
        {mayRepair ? (
          <Button
            kind="main"
            disabled={repairs.length === 0 || !isComplete(items, choices)}
            onClick={() => {
              repairing.reset();
              setIsAsking(true);
            }}
          >
            Save repair
          </Button>
        ) : null}
      </section>
      <section className={styles['section']}>
        <h2>Use the CLI instead</h2>
        <p className={styles['lead']}>
          A refresh compares all resources with the cloud, and discards interrupted operations. Created resources are
          then imported by their ids.
        </p>
        {settlingCommands(items, name).map((command) => (
          <Code key={command}>{command}</Code>
        ))}
      </section>
      {isAsking ? (
        <ActionDialog
          title="Save repair"
          description={`The state becomes version ${headVersion + 1}. Version ${headVersion} stays as it is.`}
          action={`Save as version ${headVersion + 1}`}
          isPending={repairing.isPending}
          error={repairing.error}
          onClose={() => setIsAsking(false)}
          onSubmit={() => repairing.mutate({ ...stack, headVersion, repairs })}
        >
          <p>
            {cleared === 0 ? null : `${cleared} ${cleared === 1 ? 'operation is' : 'operations are'} discarded. `}
            {imported === 0
              ? null
              : `${imported} ${imported === 1 ? 'resource is' : 'resources are'} added to the state, and read from the cloud by the next pulumi refresh. `}
            Nothing changes in the cloud.
          </p>
        </ActionDialog>
      ) : null}
    </>
  );
}

const words: Readonly<Record<string, string>> = {
  creating: 'was being created',
  updating: 'was being updated',
  deleting: 'was being deleted',
  reading: 'was being read',
  importing: 'was being imported',
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
        label={`Decision about ${name}`}
        isLabelUnseen
        value={choice.action}
        onChange={({ target }) => onChange({ ...choice, action: target.value as Choice['action'] })}
        options={[
          ['keep', 'Decide later'],
          ['clear', step.operation === 'creating' ? 'Not created: discard it' : 'Discard the operation'],
          ...(step.isImportable ? [['import', 'Created: add it by its id'] as const] : []),
        ]}
      />
      {choice.action === 'import' ? (
        <TextField
          label={`Id of ${name} in the cloud`}
          isLabelUnseen
          placeholder="Id in the cloud"
          value={choice.id}
          onChange={({ target }) => onChange({ ...choice, id: target.value })}
        />
      ) : null}
    </div>
  );
}
