import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Webhook } from '../platform/app/contract.ts';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { queryClient, trpc } from '../platform/app/trpc.ts';
import { useEdit } from '../platform/app/use-edit.ts';
import { CheckboxField, SelectField, TextField } from '../platform/ui/field.tsx';
import { webhookDialogTexts } from './texts.tsx';
import { formats, nameOfEvent } from './webhook-labels.ts';
import { managedWebhook, readWebhook, type WebhookOwner } from './webhook-owner.ts';
import styles from './webhooks.module.css';

/** Creates a webhook, or changes one. `onMade`: its name. */
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
  const { displayName, format, groups, isActive, isRemoved, secret, selected, url } = draft;
  const onSuccess = async ({ name }: Webhook): Promise<void> => {
    await queryClient.invalidateQueries({ queryKey: trpc.webhooks.pathKey() });
    onClose();
    onMade?.(name);
  };
  const create = useMutation(calls.create.mutationOptions({ onSuccess }));
  const changed = useMutation(calls.change.mutationOptions({ onSuccess }));
  const isToken = format === 'github_status' || format === 'gitlab_status';
  const send = (): void => {
    const made = {
      ...target,
      ...{ displayName: displayName.trim(), url: url.trim(), format, isActive },
      ...{ events: [...selected], groups: [...groups] },
      ...(isRemoved ? { secret: null } : secret === '' ? {} : { secret }),
    };
    if (webhook === null) create.mutate(made);
    else changed.mutate({ ...made, webhook: webhook.name, ...(base === null ? {} : { revision: base.revision }) });
  };
  return (
    <ManagedDialog
      managed={managedWebhook(owner, webhook?.name ?? null)}
      title={webhook === null ? webhookDialogTexts.addAWebhook : webhookDialogTexts.editWebhook(webhook.displayName)}
      action={webhook === null ? webhookDialogTexts.addTheWebhook : webhookDialogTexts.save}
      isReady={displayName.trim() !== '' && url.trim() !== ''}
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
        selected={selected}
        groups={groups}
        onChange={(events, of) => change({ selected: events, groups: of })}
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
    selected: (webhook?.events ?? []) as readonly string[],
    groups: (webhook?.groups ?? []) as readonly string[],
    secret: '',
    isRemoved: false,
  };
}

/** The events of a webhook. */
function EventFields({
  groups,
  onChange,
  organization,
  selected,
}: {
  readonly organization: string;
  readonly selected: readonly string[];
  readonly groups: readonly string[];
  readonly onChange: (events: readonly string[], groups: readonly string[]) => void;
}) {
  const known = useQuery(
    trpc.webhooks.events.queryOptions({ organization }, { staleTime: Number.POSITIVE_INFINITY }),
  ).data;
  const isAll = selected.length === 0 && groups.length === 0;
  const [isOpen, setIsOpen] = useState(false);
  const isChoosing = isOpen || !isAll;
  const toggle = (list: readonly string[], name: string): readonly string[] =>
    list.includes(name) ? list.filter((each) => each !== name) : [...list, name];
  return (
    <>
      <SelectField
        label={webhookDialogTexts.events}
        value={isChoosing ? 'some' : 'all'}
        options={[
          ['all', webhookDialogTexts.allEvents],
          ['some', webhookDialogTexts.someEvents],
        ]}
        onChange={({ target }) => {
          setIsOpen(target.value === 'some');
          if (target.value === 'all') onChange([], []);
        }}
      />
      {isChoosing ? (
        <fieldset className={styles['events']}>
          <legend className="unseen">{webhookDialogTexts.events}</legend>
          {known?.items.map(({ group, name, text }) => (
            <CheckboxField
              key={name}
              label={nameOfEvent(name)}
              title={text}
              disabled={groups.includes(group)}
              checked={groups.includes(group) || selected.includes(name)}
              onChange={() => onChange(toggle(selected, name), groups)}
            />
          ))}
        </fieldset>
      ) : null}
    </>
  );
}
