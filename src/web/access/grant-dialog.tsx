import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import styles from '../platform/app/settings-page.module.css';
import { LoginField, StackPathField, TagField, TeamField, TokenIdField } from '../platform/app/suggest-fields.tsx';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { trpc } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { SelectField } from '../platform/ui/field.tsx';
import type { GrantOwner } from './grant-owner.ts';
import { PermissionChoice } from './permission-set.tsx';
import { grantDialogTexts } from './texts.tsx';

const kinds = [
  ['user', grantDialogTexts.aMember],
  ['team', grantDialogTexts.aTeam],
  ['token', grantDialogTexts.aToken],
] as const;
type Kind = (typeof kinds)[number][0];

const names = {
  user: grantDialogTexts.login,
  team: grantDialogTexts.teamName,
  token: grantDialogTexts.tokenId,
} as const satisfies Record<Kind, string>;

const nameFields = { user: LoginField, team: TeamField, token: TokenIdField } as const satisfies Record<Kind, unknown>;

/** On a team's page, it is for the team; on a stack's page, the stack's name is the initial pattern. */
export function GrantDialog({
  onClose,
  organization,
  owner,
}: {
  readonly organization: string;
  readonly owner: GrantOwner;
  readonly onClose: () => void;
}) {
  const team = 'team' in owner ? owner.team : null;
  const [kind, setKind] = useState<Kind>(team === null ? 'user' : 'team');
  const [name, setName] = useState(team ?? '');
  const [effect, setEffect] = useState<'allow' | 'deny'>('allow');
  const [role, setRole] = useState('');
  const [chosen, setChosen] = useState<readonly string[]>(['read']);
  const [stacks, setStacks] = useState('on' in owner ? `${owner.on.project}/${owner.on.stack}` : '*/*');
  const [tag, setTag] = useState('');
  const roles = useQuery(trpc.roles.list.queryOptions({ organization })).data?.items ?? [];
  const give = useMutation(trpc.grants.give.mutationOptions(thenRefresh(onClose)));
  const [tagName = '', ...tagValue] = tag.trim().split('=');
  const NameField = nameFields[kind];
  const isOfRole = effect === 'allow' && role !== '';
  const submit = (): void =>
    give.mutate({
      organization,
      [kind]: name.trim(),
      effect,
      stacks: stacks.trim(),
      ...(isOfRole ? { role } : { permissions: [...chosen] }),
      ...(tagName === ''
        ? {}
        : { tag: { name: tagName, ...(tagValue.length === 0 ? {} : { value: tagValue.join('=') }) } }),
    });
  return (
    <ActionDialog
      title={team === null ? grantDialogTexts.title : grantDialogTexts.titleForTeam(team)}
      description={grantDialogTexts.lead}
      action={effect === 'deny' ? grantDialogTexts.denyAction : grantDialogTexts.action}
      isDanger={effect === 'deny'}
      error={give.error}
      isPending={give.isPending}
      isReady={name.trim() !== '' && stacks.trim() !== '' && (isOfRole || chosen.length > 0)}
      onSubmit={submit}
      onClose={onClose}
    >
      {team === null ? (
        <div className={styles['row']}>
          <SelectField
            label={grantDialogTexts.grantedTo}
            value={kind}
            options={kinds}
            onChange={({ target }) => setKind(target.value as Kind)}
          />
          <div className={styles['grow']} key={kind}>
            <NameField
              organization={organization}
              label={names[kind]}
              value={name}
              maxLength={200}
              required
              onChange={setName}
            />
          </div>
        </div>
      ) : null}
      <div className={styles['row']}>
        <SelectField
          label={grantDialogTexts.effect}
          value={effect}
          options={[
            ['allow', grantDialogTexts.allow],
            ['deny', grantDialogTexts.deny],
          ]}
          onChange={({ target }) => setEffect(target.value as 'allow' | 'deny')}
        />
        {effect === 'deny' ? null : (
          <div className={styles['grow']}>
            <SelectField
              label={grantDialogTexts.grant}
              value={role}
              options={[
                ['', grantDialogTexts.individual],
                ...roles.map((each) => [each.id, grantDialogTexts.theRole(each.name)] as const),
              ]}
              onChange={({ target }) => setRole(target.value)}
            />
          </div>
        )}
      </div>
      {isOfRole ? (
        <p className={styles['note']}>
          {grantDialogTexts.permissionsOfRole(roles.find(({ id }) => id === role)?.permissions.join(', ') ?? '')}
        </p>
      ) : (
        <PermissionChoice label={grantDialogTexts.permissions} names={chosen} onChange={setChosen} />
      )}
      <StackPathField
        organization={organization}
        label={grantDialogTexts.stacks}
        value={stacks}
        maxLength={201}
        required
        hint={grantDialogTexts.stacksHint(<code>project/stack</code>, <code>*</code>)}
        onChange={setStacks}
      />
      <TagField
        organization={organization}
        label={grantDialogTexts.tag}
        value={tag}
        maxLength={300}
        placeholder={grantDialogTexts.tagExample}
        hint={grantDialogTexts.tagHint}
        onChange={setTag}
      />
    </ActionDialog>
  );
}
