import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Webhook } from '../app/contract.ts';
import { queryClient, trpc } from '../app/trpc.ts';
import { ActionDialog } from '../ui/action-dialog.tsx';
import { CheckboxField, SelectField, TextField } from '../ui/field.tsx';
import type { WebhookOwner } from './webhook-owner.ts';
import { formats, nameOfEvent } from './webhook-words.ts';
import styles from './webhooks.module.css';

/** Creates a webhook, or changes one. `onMade`: its name. */
export function WebhookDialog({
  onClose,
  onMade,
  owner: { calls, place },
  webhook,
}: {
  readonly owner: WebhookOwner;
  readonly webhook: Webhook | null;
  readonly onClose: () => void;
  readonly onMade?: (name: string) => void;
}) {
  const [displayName, setDisplayName] = useState(webhook?.displayName ?? '');
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [format, setFormat] = useState(webhook?.format ?? 'raw');
  const [isActive, setIsActive] = useState(webhook?.isActive ?? true);
  const [selected, setSelected] = useState<readonly string[]>(webhook?.events ?? []);
  const [groups, setGroups] = useState<readonly string[]>(webhook?.groups ?? []);
  const [secret, setSecret] = useState('');
  const [isRemoved, setIsRemoved] = useState(false);
  const onSuccess = async ({ name }: Webhook): Promise<void> => {
    await queryClient.invalidateQueries({ queryKey: trpc.webhooks.pathKey() });
    onClose();
    onMade?.(name);
  };
  const create = useMutation(calls.create.mutationOptions({ onSuccess }));
  const change = useMutation(calls.change.mutationOptions({ onSuccess }));
  const isToken = format === 'github_status' || format === 'gitlab_status';
  const send = (): void => {
    const made = {
      ...place,
      ...{ displayName: displayName.trim(), url: url.trim(), format, isActive },
      ...{ events: [...selected], groups: [...groups] },
      ...(isRemoved ? { secret: null } : secret === '' ? {} : { secret }),
    };
    if (webhook === null) create.mutate(made);
    else change.mutate({ ...made, webhook: webhook.name });
  };
  return (
    <ActionDialog
      title={webhook === null ? 'Add a webhook' : `Change ${webhook.displayName}`}
      action={webhook === null ? 'Add it' : 'Save'}
      isReady={displayName.trim() !== '' && url.trim() !== ''}
      isPending={create.isPending || change.isPending}
      error={create.error ?? change.error}
      onClose={onClose}
      onSubmit={send}
    >
      <TextField
        label="Name"
        maxLength={100}
        value={displayName}
        onChange={({ target }) => setDisplayName(target.value)}
      />
      <TextField
        label="URL"
        type="url"
        placeholder="https://"
        hint={isToken ? 'That of the API of the code host.' : undefined}
        value={url}
        onChange={({ target }) => setUrl(target.value)}
      />
      <SelectField label="Format" value={format} options={formats} onChange={({ target }) => setFormat(target.value)} />
      <TextField
        label={isToken ? 'Token of the code host' : 'Secret of the signatures'}
        type="password"
        autoComplete="new-password"
        hint={
          webhook?.hasSecret === true
            ? 'It has one, which is never shown. Empty: it stays. Another server needs another one.'
            : 'Never shown again.'
        }
        disabled={isRemoved}
        value={secret}
        onChange={({ target }) => setSecret(target.value)}
      />
      {webhook?.hasSecret === true ? (
        <CheckboxField
          label="Remove the secret"
          checked={isRemoved}
          onChange={({ target }) => setIsRemoved(target.checked)}
        />
      ) : null}
      <EventFields
        organization={place.organization}
        selected={selected}
        groups={groups}
        onChange={(events, of) => {
          setSelected(events);
          setGroups(of);
        }}
      />
      <CheckboxField label="Active" checked={isActive} onChange={({ target }) => setIsActive(target.checked)} />
    </ActionDialog>
  );
}

/** Which events a webhook is told of. */
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
  const [isChoosing, setIsChoosing] = useState(!isAll);
  const toggle = (list: readonly string[], name: string): readonly string[] =>
    list.includes(name) ? list.filter((each) => each !== name) : [...list, name];
  return (
    <>
      <SelectField
        label="Told of"
        value={isChoosing ? 'some' : 'all'}
        options={[
          ['all', 'all events'],
          ['some', 'some events'],
        ]}
        onChange={({ target }) => {
          setIsChoosing(target.value === 'some');
          if (target.value === 'all') onChange([], []);
        }}
      />
      {isChoosing ? (
        <fieldset className={styles['events']}>
          <legend className="unseen">Events</legend>
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
