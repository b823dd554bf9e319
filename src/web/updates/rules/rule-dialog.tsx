import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import type { Rule, StackRef } from '../../platform/app/procedure-types.ts';
import { ProjectField, StackField, TagNameField, TagValueField } from '../../platform/app/suggest-fields.tsx';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit } from '../../platform/app/use-edit.ts';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import styles from './rule-dialog.module.css';
import { draftOf, keptByDefault, type RuleDraft, type ScopeKind, type WrittenRule, writtenRule } from './rule-draft.ts';
import { declaredKind, describeEstimate, isOfRetention, type RuleKind, ruleKinds } from './rule-labels.ts';
import { RuleSettings } from './rule-settings.tsx';
import { ruleDialogTexts } from './texts.tsx';
import { NextWindows } from './window-times.tsx';

const pauseMs = 400;

type EditedRule = Omit<Rule, 'freeze' | 'isManaged'>;

/** Sets a rule of one of the `kinds`, or edits `rule`. */
export function RuleDialog({
  first,
  kinds,
  onClose,
  organization,
  rule: changedRule = null,
  stack,
}: {
  readonly organization: string;
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
  const preview = useRulePreview(organization, rule);
  // Freezes replace no rule. Any other rule can be added once the rule that it replaces is known.
  const isLookedUp = !isNew || isFreeze || preview.isLookedUp;
  const replaces = isNew && !isFreeze ? preview.replaces : null;
  const name = ruleKinds[draft.kind].name;
  const target = stack && `${stack.project}/${stack.stack}`;
  return (
    <ManagedDialog
      managed={{ organization, kind: declaredKind(draft.kind), object: base?.id ?? replaces }}
      title={
        !isNew
          ? ruleDialogTexts.editTitle(name)
          : isFreeze
            ? ruleDialogTexts.freezeTitle(target)
            : ruleDialogTexts.addARule
      }
      description={isFreeze ? ruleDialogTexts.freezeDescription : ruleKinds[draft.kind].about}
      action={!isNew ? ruleDialogTexts.save : isFreeze ? ruleDialogTexts.freeze : ruleDialogTexts.addTheRule}
      isReady={rule !== null && isLookedUp}
      {...dialog(isNew ? set : changed)}
      onClose={onClose}
      onSubmit={submit}
    >
      {isNew && kinds.length > 1 ? (
        <SelectField
          label={ruleDialogTexts.kind}
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
        label={ruleDialogTexts.note}
        hint={isFreeze ? ruleDialogTexts.freezeNoteHint : ruleDialogTexts.noteHint}
        value={draft.note}
        maxLength={500}
        onChange={({ target }) => change({ note: target.value })}
      />
      <Preview {...preview} />
      <p role="status">{replaces === null ? null : ruleDialogTexts.replaces}</p>
      {isOfRetention(draft.kind) ? <Estimate organization={organization} rule={rule} ruleId={base?.id} /> : null}
    </ManagedDialog>
  );
}

const scopeNames: Readonly<Record<ScopeKind, string>> = ruleDialogTexts.scopeNames;

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
        label={ruleDialogTexts.appliesTo}
        value={scope}
        options={Object.entries(scopeNames)}
        onChange={({ target }) => onChange({ scope: target.value as ScopeKind })}
      />
      {scope === 'organization' ? null : (
        <div className={styles['pair']}>
          {scope === 'tag' ? (
            <>
              <TagNameField {...field(ruleDialogTexts.tag, 'tagName', 'env')} />
              <TagValueField {...field(ruleDialogTexts.value, 'tagValue', 'prod')} tag={draft.tagName.trim()} />
            </>
          ) : null}
          <ProjectField
            {...field(scope === 'tag' ? ruleDialogTexts.ofAProjectOnly : ruleDialogTexts.project, 'project')}
          />
          {scope === 'stack' ? (
            <StackField {...field(ruleDialogTexts.stack, 'stack', 'prod')} project={draft.project.trim()} />
          ) : null}
        </div>
      )}
    </div>
  );
}

/** The stacks and the replaced rule of the rule, from the server. `isLookedUp`: `replaces` is known for its kind and stacks. */
function useRulePreview(organization: string, rule: WrittenRule | null) {
  const written = rule === null ? null : JSON.stringify(rule);
  const settled = useSettled(written);
  const query = useQuery(
    trpc.rules.preview.queryOptions(
      { organization, ...settledRule(settled) },
      { enabled: settled !== null, placeholderData: keepPreviousData, retry: false },
    ),
  );
  const target =
    rule === null ? null : JSON.stringify([rule.kind, rule.project, rule.stack, rule.tag, rule.settings['per']]);
  const [found, setFound] = useState<{ readonly target: string | null; readonly replaces: string | null } | null>(null);
  const current = settled === written && !query.isPlaceholderData && !query.isError ? query.data : undefined;
  useEffect(() => {
    if (current !== undefined) setFound({ target, replaces: current.replaces });
  }, [current, target]);
  const isLookedUp = found !== null && found.target === target;
  return { isAsked: settled !== null, isLookedUp, replaces: isLookedUp ? found.replaces : null, query };
}

/** The stacks that the rule would apply to. */
function Preview({ isAsked, query }: ReturnType<typeof useRulePreview>) {
  if (!isAsked) return null;
  const { data, error } = query;
  return (
    <div className={styles['preview']} aria-live="polite" aria-busy={query.isFetching}>
      {error ? (
        <p className={styles['problem']}>{error.message}</p>
      ) : data === undefined ? (
        <p>{ruleDialogTexts.lookingForStacks}</p>
      ) : (
        <>
          <p>
            {data.stackCount === 0
              ? ruleDialogTexts.noStackMatches
              : ruleDialogTexts.forStacks(data.stackCount, data.hasMoreStacks)}{' '}
            {data.stacks.map(({ project, stack }) => `${project}/${stack}`).join(', ')}
            {data.stackCount > data.stacks.length ? ' …' : ''}
          </p>
          {data.freeze === null ? null : <NextWindows freeze={data.freeze} />}
        </>
      )}
    </div>
  );
}

/** The data that a rule about retention would delete now, from the server. */
function Estimate({
  organization,
  rule,
  ruleId,
}: {
  readonly organization: string;
  readonly rule: WrittenRule | null;
  readonly ruleId: string | undefined;
}) {
  const settled = useSettled(rule === null ? null : JSON.stringify(rule));
  const query = useQuery(
    trpc.rules.estimate.queryOptions(
      {
        organization,
        ...(ruleId === undefined ? {} : { ruleId }),
        ...settledRule(settled),
      },
      { enabled: settled !== null, placeholderData: keepPreviousData, retry: false },
    ),
  );
  const { data } = query;
  if (settled === null || query.error || (data === undefined && !query.isFetching)) return null;
  return (
    <div className={styles['preview']} aria-live="polite" aria-busy={query.isFetching}>
      <p>{data == null ? ruleDialogTexts.counting : describeEstimate(data)}</p>
    </div>
  );
}

function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** A query without a settled rule is disabled. */
function settledRule(text: string | null): WrittenRule {
  return JSON.parse(text ?? '{"kind":"","settings":{}}') as WrittenRule;
}
