import { useMutation, useQuery } from '@tanstack/react-query';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { PartProblem, useProblem } from '../platform/app/problem-pages.tsx';
import type { Webhook } from '../platform/app/procedure-types.ts';
import { refresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { useEdit } from '../platform/app/use-edit.ts';
import { CheckboxField, SelectField, TextField } from '../platform/ui/field.tsx';
import { webhookDialogTexts } from './texts.tsx';
import { formats, nameOfEvent } from './webhook-labels.ts';
import { managedWebhook, readWebhook, type WebhookOwner } from './webhook-owner.ts';
import styles from './webhooks.module.css';

/** `onMade` gets the name of a new webhook. */
export function WebhookDialog({
  onClose,
  onMade,
  owner,
  webhook,
}: {
  readonly owner: WebhookOwner;
  readonly webhook: Webhook | null;
  readonly onClose: () => void;
  readonly onMade?: (name: string) => void;
}) {
  const { calls, target } = owner;
  const { base, change, dialog, draft } = useEdit({
    item: webhook,
    draftOf,
    read: () => readWebhook(owner, webhook?.name ?? ''),
  });
  const { displayName, format, groups, isActive, isAll, isRemoved, secret, selected, url } = draft;
  const afterwards = { onSuccess: () => refresh(trpc.webhooks.pathKey()) };
  const create = useMutation(calls.create.mutationOptions(afterwards));
  const changed = useMutation(calls.change.mutationOptions(afterwards));
  const isToken = format === 'github_status' || format === 'gitlab_status';
  const send = (): void => {
    const made = {
      ...target,
      ...{ displayName: displayName.trim(), url: url.trim(), format, isActive },
      // A webhook without events is for all events.
      ...(isAll ? { events: [], groups: [] } : { events: [...selected], groups: [...groups] }),
      ...(isRemoved ? { secret: null } : secret === '' ? {} : { secret }),
    };
    const onSuccess = ({ name }: Webhook): void => {
      onClose();
      onMade?.(name);
    };
    const revision = base === null ? {} : { revision: base.revision };
    if (webhook === null) create.mutate(made, { onSuccess });
    else changed.mutate({ ...made, webhook: webhook.name, ...revision }, { onSuccess });
  };
  return (
    <ManagedDialog
      managed={managedWebhook(owner, webhook?.name ?? null)}
      title={webhook === null ? webhookDialogTexts.addAWebhook : webhookDialogTexts.editWebhook(webhook.displayName)}
      action={webhook === null ? webhookDialogTexts.addTheWebhook : webhookDialogTexts.save}
      isReady={displayName.trim() !== '' && url.trim() !== '' && (isAll || selected.length + groups.length > 0)}
      {...dialog(webhook === null ? create : changed)}
      onClose={onClose}
      onSubmit={send}
    >
      <TextField
        label={webhookDialogTexts.name}
        maxLength={100}
        value={displayName}
        onChange={({ target }) => change({ displayName: target.value })}
      />
      <TextField
        label={webhookDialogTexts.url}
        type="url"
        placeholder={webhookDialogTexts.urlExample}
        hint={isToken ? webhookDialogTexts.tokenHint : undefined}
        value={url}
        onChange={({ target }) => change({ url: target.value })}
      />
      <SelectField
        label={webhookDialogTexts.format}
        value={format}
        options={formats}
        onChange={({ target }) => change({ format: target.value })}
      />
      <TextField
        label={isToken ? webhookDialogTexts.codeHostToken : webhookDialogTexts.signingSecret}
        type="password"
        autoComplete="new-password"
        hint={base?.hasSecret === true ? webhookDialogTexts.secretIsSet : webhookDialogTexts.neverShownAgain}
        disabled={isRemoved}
        value={secret}
        onChange={({ target }) => change({ secret: target.value })}
      />
      {base?.hasSecret === true ? (
        <CheckboxField
          label={webhookDialogTexts.removeTheSecret}
          checked={isRemoved}
          onChange={({ target }) => change({ isRemoved: target.checked })}
        />
      ) : null}
      <EventFields
        organization={target.organization}
        isAll={isAll}
        selected={selected}
        groups={groups}
        onChange={change}
      />
      <CheckboxField
        label={webhookDialogTexts.active}
        checked={isActive}
        onChange={({ target }) => change({ isActive: target.checked })}
      />
    </ManagedDialog>
  );
}

function draftOf(webhook: Webhook | null) {
  return {
    displayName: webhook?.displayName ?? '',
    url: webhook?.url ?? '',
    format: webhook?.format ?? 'raw',
    isActive: webhook?.isActive ?? true,
    isAll: webhook === null || webhook.events.length + webhook.groups.length === 0,
    selected: (webhook?.events ?? []) as readonly string[],
    groups: (webhook?.groups ?? []) as readonly string[],
    secret: '',
    isRemoved: false,
  };
}

function EventFields({
  groups,
  isAll,
  onChange,
  organization,
  selected,
}: {
  readonly organization: string;
  readonly isAll: boolean;
  readonly selected: readonly string[];
  readonly groups: readonly string[];
  readonly onChange: (part: Partial<ReturnType<typeof draftOf>>) => void;
}) {
  const known = useQuery(trpc.webhooks.events.queryOptions({ organization }, { staleTime: Number.POSITIVE_INFINITY }));
  const problem = useProblem(known);
  const toggle = (list: readonly string[], name: string): readonly string[] =>
    list.includes(name) ? list.filter((each) => each !== name) : [...list, name];
  return (
    <>
      <SelectField
        label={webhookDialogTexts.events}
        value={isAll ? 'all' : 'some'}
        options={[
          ['all', webhookDialogTexts.allEvents],
          ['some', webhookDialogTexts.someEvents],
        ]}
        onChange={({ target }) => onChange({ isAll: target.value === 'all', selected: [], groups: [] })}
      />
      {isAll ? null : (
        <fieldset className={styles['events']}>
          <legend className="unseen">{webhookDialogTexts.events}</legend>
          {problem ? <PartProblem {...problem} /> : null}
          {known.data?.items.map(({ group, name, text }) => (
            <CheckboxField
              key={name}
              label={nameOfEvent(name)}
              title={text}
              disabled={groups.includes(group)}
              checked={groups.includes(group) || selected.includes(name)}
              onChange={() => onChange({ selected: toggle(selected, name) })}
            />
          ))}
        </fieldset>
      )}
    </>
  );
}
