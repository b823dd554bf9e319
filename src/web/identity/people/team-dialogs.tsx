import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import type { TeamDetails, TeamMemberItem } from '../../platform/app/procedure-types.ts';
import { LoginField } from '../../platform/app/suggest-fields.tsx';
import { refresh, thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit, useRemoval } from '../../platform/app/use-edit.ts';
import { TextArea, TextField } from '../../platform/ui/field.tsx';
import { teamDialogTexts } from '../texts.tsx';

interface DialogProps {
  readonly organization: string;
  readonly team: string;
  readonly isManaged: boolean;
  readonly onClose: () => void;
}

export function EditTeamDialog({
  isManaged,
  onClose,
  organization,
  shown,
  team,
}: DialogProps & { readonly shown: TeamDetails }) {
  const { base, change, dialog, draft } = useEdit({
    item: shown,
    draftOf: ({ description, displayName }: TeamDetails) => ({ description, displayName }),
    read: () => apiClient.teams.get.query({ organization, team }),
  });
  const { description, displayName } = draft;
  const { revision } = base;
  const edit = useMutation(trpc.teams.edit.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Team', object: team, isManaged }}
      title={teamDialogTexts.editTitle(team)}
      action={teamDialogTexts.save}
      {...dialog(edit)}
      isReady={displayName.trim() !== ''}
      onSubmit={() => edit.mutate({ organization, team, revision, displayName: displayName.trim(), description })}
      onClose={onClose}
    >
      <TextField
        label={teamDialogTexts.displayName}
        value={displayName}
        maxLength={200}
        required
        onChange={({ target }) => change({ displayName: target.value })}
      />
      <TextArea
        label={teamDialogTexts.description}
        value={description}
        maxLength={2_000}
        onChange={({ target }) => change({ description: target.value })}
      />
    </ManagedDialog>
  );
}

export function DeleteTeamDialog({
  isManaged,
  onClose,
  organization,
  shown,
  team,
}: DialogProps & { readonly shown: TeamDetails }) {
  const navigate = useNavigate();
  const { dialog, item } = useRemoval({ item: shown, read: () => apiClient.teams.get.query({ organization, team }) });
  const remove = useMutation(
    // Only the list: the queries of this page would fail once the team is gone.
    trpc.teams.delete.mutationOptions({ onSuccess: () => refresh(trpc.teams.list.pathKey()) }),
  );
  const leave = async (): Promise<void> => {
    await navigate({ to: '/$organization/~/teams', params: { organization } });
    await refresh();
  };
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Team', object: team, isManaged }}
      title={teamDialogTexts.deleteTitle(item.displayName)}
      description={teamDialogTexts.deleteLead}
      action={teamDialogTexts.deleteAction}
      isDanger
      typed={team}
      {...dialog(remove)}
      onSubmit={() => remove.mutate({ organization, team, revision: item.revision }, { onSuccess: () => void leave() })}
      onClose={onClose}
    >
      {item.description === '' ? null : <p>{item.description}</p>}
    </ManagedDialog>
  );
}

export function AddToTeamDialog({ isManaged, onClose, organization, team }: DialogProps) {
  const [login, setLogin] = useState('');
  const add = useMutation(trpc.teams.setMember.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Team', object: team, isManaged }}
      title={teamDialogTexts.addTitle(team)}
      description={teamDialogTexts.addLead}
      action={teamDialogTexts.addAction}
      error={add.error}
      isPending={add.isPending}
      isReady={login.trim() !== ''}
      onSubmit={() => add.mutate({ organization, team, login: login.trim() })}
      onClose={onClose}
    >
      <LoginField
        organization={organization}
        label={teamDialogTexts.login}
        value={login}
        maxLength={100}
        required
        hint={teamDialogTexts.addHint(organization)}
        onChange={setLogin}
      />
    </ManagedDialog>
  );
}

export function TeamMemberDialog({
  isManaged,
  member: { isAdmin, login },
  onClose,
  organization,
  team,
  what,
}: DialogProps & { readonly member: TeamMemberItem; readonly what: 'admin' | 'remove' }) {
  const options = thenRefresh(onClose);
  const set = useMutation(trpc.teams.setMember.mutationOptions(options));
  const remove = useMutation(trpc.teams.removeMember.mutationOptions(options));
  if (what === 'remove') {
    return (
      <ManagedDialog
        managed={{ organization, kind: 'Team', object: team, isManaged }}
        title={teamDialogTexts.removeTitle(login, team)}
        description={teamDialogTexts.removeLead}
        action={teamDialogTexts.removeAction}
        isDanger
        error={remove.error}
        isPending={remove.isPending}
        onSubmit={() => remove.mutate({ organization, team, login })}
        onClose={onClose}
      />
    );
  }
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Team', object: team, isManaged }}
      title={isAdmin ? teamDialogTexts.makeOrdinaryTitle(login, team) : teamDialogTexts.makeAdminTitle(login, team)}
      description={isAdmin ? teamDialogTexts.makeOrdinaryLead : teamDialogTexts.makeAdminLead}
      action={isAdmin ? teamDialogTexts.makeOrdinary : teamDialogTexts.makeAdmin}
      error={set.error}
      isPending={set.isPending}
      onSubmit={() => set.mutate({ organization, team, login, isAdmin: !isAdmin })}
      onClose={onClose}
    />
  );
}
