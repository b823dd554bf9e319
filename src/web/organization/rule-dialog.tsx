import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { StackRef } from '../app/contract.ts';
import { queryClient, trpc } from '../app/trpc.ts';
import { ActionDialog } from '../ui/action-dialog.tsx';
import { SelectField, TextField } from '../ui/field.tsx';
import styles from './rule-dialog.module.css';
import { type RuleDraft, type ScopeKind, type WrittenRule, writtenRule } from './rule-draft.ts';
import { RuleSettings } from './rule-settings.tsx';
import { type RuleKind, ruleKinds } from './rule-words.ts';
import { NextWindows } from './window-times.tsx';

const pauseMs = 400;

/** Sets a rule. `isNew`: its kind (one of `kinds`) and what it is for can be chosen. `stack`: it is for this one. */
export function RuleDialog({
  first,
  isNew,
  kinds,
  onClose,
  organization,
  stack,
}: {
  readonly organization: string;
  readonly first: RuleDraft;
  readonly isNew: boolean;
  readonly kinds: readonly RuleKind[];
  readonly stack?: StackRef;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(first);
  const change = (part: Partial<RuleDraft>): void => setDraft((known) => ({ ...known, ...part }));
  const rule = writtenRule(draft);
  const set = useMutation(
    trpc.rules.set.mutationOptions({
      onSuccess: async () => {
        await queryClient.invalidateQueries();
        onClose();
      },
    }),
  );
  const isFreeze = draft.kind === 'freeze';
  const name = ruleKinds[draft.kind].name;
  const place = stack && `${stack.project}/${stack.stack}`;
  return (
    <ActionDialog
      title={isFreeze ? `Freeze ${place ?? 'stacks'}` : isNew ? 'Add a rule' : `Change: ${name}`}
      description={
        isFreeze
          ? 'Updates, imports, renaming and deleting are refused. Previews go on, and so does an update that runs.'
          : ruleKinds[draft.kind].about
      }
      action={isFreeze ? 'Freeze' : 'Set the rule'}
      isReady={rule !== null}
      isPending={set.isPending}
      error={set.error}
      onClose={onClose}
      onSubmit={() => (rule === null ? undefined : set.mutate({ organization, ...rule }))}
    >
      {isNew && kinds.length > 1 ? (
        <SelectField
          label="Kind"
          value={draft.kind}
          options={kinds.map((kind) => [kind, ruleKinds[kind].name])}
          onChange={({ target }) =>
            change({
              kind: target.value as RuleKind,
              mode: target.value === 'consumers' || target.value === 'require-preview' ? 'warn' : 'refuse',
            })
          }
        />
      ) : null}
      {stack === undefined ? <ScopeFields draft={draft} isFixed={!isNew} onChange={change} /> : null}
      <RuleSettings draft={draft} onChange={change} />
      <TextField
        label="Note"
        hint={isFreeze ? 'Whoever is refused reads it in their terminal.' : 'Why it is so, for others.'}
        value={draft.note}
        maxLength={500}
        onChange={({ target }) => change({ note: target.value })}
      />
      <Preview organization={organization} rule={rule} />
    </ActionDialog>
  );
}

const scopeNames: Readonly<Record<ScopeKind, string>> = {
  organization: 'All stacks of the organization',
  project: 'Stacks of a project',
  stack: 'One stack',
  tag: 'Stacks with a tag',
};

function ScopeFields({
  draft,
  isFixed,
  onChange,
}: {
  readonly draft: RuleDraft;
  readonly isFixed: boolean;
  readonly onChange: (part: Partial<RuleDraft>) => void;
}) {
  const { scope } = draft;
  const text = (label: string, name: 'project' | 'stack' | 'tagName' | 'tagValue', placeholder = '') => (
    <TextField
      label={label}
      value={draft[name]}
      disabled={isFixed}
      placeholder={placeholder}
      onChange={({ target }) => onChange({ [name]: target.value })}
    />
  );
  return (
    <div className={styles['group']}>
      <SelectField
        label="For"
        value={scope}
        disabled={isFixed}
        options={Object.entries(scopeNames)}
        onChange={({ target }) => onChange({ scope: target.value as ScopeKind })}
      />
      {scope === 'organization' ? null : (
        <div className={styles['pair']}>
          {scope === 'tag' ? (
            <>
              {text('Tag', 'tagName', 'env')}
              {text('Value', 'tagValue', 'prod')}
            </>
          ) : null}
          {text(scope === 'tag' ? 'Of a project only' : 'Project', 'project')}
          {scope === 'stack' ? text('Stack', 'stack', 'prod') : null}
        </div>
      )}
    </div>
  );
}

/** What the rule would be for, as the server says. */
function Preview({ organization, rule }: { readonly organization: string; readonly rule: WrittenRule | null }) {
  const settled = useSettled(rule === null ? null : JSON.stringify(rule));
  const query = useQuery(
    trpc.rules.preview.queryOptions(
      { organization, ...(JSON.parse(settled ?? '{"kind":"","settings":{}}') as WrittenRule) },
      { enabled: settled !== null, placeholderData: keepPreviousData, retry: false },
    ),
  );
  if (settled === null) return null;
  const { data, error } = query;
  return (
    <div className={styles['preview']} aria-live="polite" aria-busy={query.isFetching}>
      {error ? (
        <p className={styles['problem']}>{error.message}</p>
      ) : data === undefined ? (
        <p>Looking for its stacks…</p>
      ) : (
        <>
          <p>
            {data.stackCount === 0
              ? 'No stack is selected by this now.'
              : `For ${data.hasMoreStacks ? `more than ${data.stackCount.toLocaleString()}` : data.stackCount.toLocaleString()} ${data.stackCount === 1 ? 'stack' : 'stacks'}:`}{' '}
            {data.stacks.map(({ project, stack }) => `${project}/${stack}`).join(', ')}
            {data.stackCount > data.stacks.length ? ' …' : ''}
          </p>
          {data.freeze === null ? null : <NextWindows freeze={data.freeze} />}
        </>
      )}
    </div>
  );
}

/** The value once it has not changed for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
