import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { Rule, StackRef } from '../../platform/app/contract.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { ProjectField, StackField, TagNameField, TagValueField } from '../../platform/app/suggest-fields.tsx';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit } from '../../platform/app/use-edit.ts';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import styles from './rule-dialog.module.css';
import { draftOf, keptByDefault, type RuleDraft, type ScopeKind, type WrittenRule, writtenRule } from './rule-draft.ts';
import { declaredKind, describeEstimate, isOfRetention, type RuleKind, ruleKinds } from './rule-labels.ts';
import { RuleSettings } from './rule-settings.tsx';
import { NextWindows } from './window-times.tsx';

const pauseMs = 400;

type EditedRule = Omit<Rule, 'freeze' | 'isManaged'>;

/** Sets a rule of one of the `kinds`, or edits `rule`. `stack`: the stack the rule is for. */
export function RuleDialog({
  first,
  kinds,
  onClose,
  organization,
  rule: changedRule = null,
  stack,
}: {
  readonly organization: string;
  /** The initial draft of a new rule. */
  readonly first: RuleDraft;
  readonly rule?: EditedRule | null;
  readonly kinds: readonly RuleKind[];
  readonly stack?: StackRef;
  readonly onClose: () => void;
}) {
  const { base, change, dialog, draft } = useEdit<EditedRule | null, RuleDraft>({
    item: changedRule,
    draftOf: (item) => (item === null ? first : draftOf(item)),
    read: () => apiClient.rules.get.query({ organization, ruleId: changedRule?.id ?? '' }),
  });
  const rule = writtenRule(draft);
  const set = useMutation(trpc.rules.set.mutationOptions(thenRefresh(onClose)));
  const changed = useMutation(trpc.rules.change.mutationOptions(thenRefresh(onClose)));
  const isNew = base === null;
  const submit = (): void => {
    if (rule === null) return;
    if (isNew) set.mutate({ organization, ...rule });
    else changed.mutate({ organization, ruleId: base.id, revision: base.revision, ...rule });
  };
  const isFreeze = draft.kind === 'freeze';
  const name = ruleKinds[draft.kind].name;
  const target = stack && `${stack.project}/${stack.stack}`;
  return (
    <ManagedDialog
      managed={{ organization, kind: declaredKind(draft.kind), object: base?.id ?? null }}
      title={!isNew ? `Edit: ${name}` : isFreeze ? `Freeze ${target ?? 'stacks'}` : 'Add a rule'}
      description={
        isFreeze
          ? 'Updates, imports, renaming and deletion are refused. Previews and running updates go on.'
          : ruleKinds[draft.kind].about
      }
      action={!isNew ? 'Save' : isFreeze ? 'Freeze' : 'Add the rule'}
      isReady={rule !== null}
      {...dialog(isNew ? set : changed)}
      onClose={onClose}
      onSubmit={submit}
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
              ...keptByDefault(target.value as RuleKind),
            })
          }
        />
      ) : null}
      {stack === undefined ? <ScopeFields organization={organization} draft={draft} onChange={change} /> : null}
      <RuleSettings draft={draft} onChange={change} />
      <TextField
        label="Note"
        hint={isFreeze ? 'Shown in the terminal of refused updates.' : 'The reason, shown to other users.'}
        value={draft.note}
        maxLength={500}
        onChange={({ target }) => change({ note: target.value })}
      />
      <Preview organization={organization} rule={rule} />
      {isOfRetention(draft.kind) ? <Estimate organization={organization} rule={rule} ruleId={base?.id} /> : null}
    </ManagedDialog>
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
  onChange,
  organization,
}: {
  readonly organization: string;
  readonly draft: RuleDraft;
  readonly onChange: (part: Partial<RuleDraft>) => void;
}) {
  const { scope } = draft;
  const field = (label: string, name: 'project' | 'stack' | 'tagName' | 'tagValue', placeholder = '') => ({
    ...{ organization, label, placeholder, value: draft[name] },
    onChange: (value: string) => onChange({ [name]: value }),
  });
  return (
    <div className={styles['group']}>
      <SelectField
        label="Applies to"
        value={scope}
        options={Object.entries(scopeNames)}
        onChange={({ target }) => onChange({ scope: target.value as ScopeKind })}
      />
      {scope === 'organization' ? null : (
        <div className={styles['pair']}>
          {scope === 'tag' ? (
            <>
              <TagNameField {...field('Tag', 'tagName', 'env')} />
              <TagValueField {...field('Value', 'tagValue', 'prod')} tag={draft.tagName.trim()} />
            </>
          ) : null}
          <ProjectField {...field(scope === 'tag' ? 'Of a project only' : 'Project', 'project')} />
          {scope === 'stack' ? (
            <StackField {...field('Stack', 'stack', 'prod')} project={draft.project.trim()} />
          ) : null}
        </div>
      )}
    </div>
  );
}

/** The stacks that the rule would apply to, from the server. */
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
              ? 'No stack matches now.'
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

/** What a rule about retention would delete now, from the server. */
function Estimate({
  organization,
  rule,
  ruleId,
}: {
  readonly organization: string;
  readonly rule: WrittenRule | null;
  /** The rule that is edited. */
  readonly ruleId: string | undefined;
}) {
  const settled = useSettled(rule === null ? null : JSON.stringify(rule));
  const query = useQuery(
    trpc.rules.estimate.queryOptions(
      {
        organization,
        ...(ruleId === undefined ? {} : { ruleId }),
        ...(JSON.parse(settled ?? '{"kind":"","settings":{}}') as WrittenRule),
      },
      { enabled: settled !== null, placeholderData: keepPreviousData, retry: false },
    ),
  );
  const { data } = query;
  if (settled === null || query.error || (data === undefined && !query.isFetching)) return null;
  return (
    <div className={styles['preview']} aria-live="polite" aria-busy={query.isFetching}>
      <p>{data == null ? 'Counting what it deletes…' : describeEstimate(data)}</p>
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
