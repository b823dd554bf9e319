import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { TeamDetails, TeamMemberItem } from '../../platform/app/contract.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { LoginField } from '../../platform/app/suggest-fields.tsx';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, queryClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit, useRemoval } from '../../platform/app/use-edit.ts';
import { TextArea, TextField } from '../../platform/ui/field.tsx';

interface DialogProps {
  readonly organization: string;
  readonly team: string;
  /** Whether a configuration declares the team. */
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
      title={`Edit ${team}`}
      action="Save"
      {...dialog(edit)}
      isReady={displayName.trim() !== ''}
      onSubmit={() => edit.mutate({ organization, team, revision, displayName: displayName.trim(), description })}
      onClose={onClose}
    >
      <TextField
        label="Display name"
        value={displayName}
        maxLength={200}
        required
        onChange={({ target }) => change({ displayName: target.value })}
      />
      <TextArea
        label="Description"
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
    trpc.teams.delete.mutationOptions({
      onSuccess: async () => {
        // Leaves the page first: its queries would fail once the team is gone.
        await navigate({ to: '/$organization/~/teams', params: { organization } });
        await queryClient.invalidateQueries();
      },
    }),
  );
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Team', object: team, isManaged }}
      title={`Delete ${item.displayName}?`}
      description="This also deletes its grants and tokens. Running updates that are no longer permitted lose their lock. Its members stay in the organization."
      action="Delete the team"
      isDanger
      typed={team}
      {...dialog(remove)}
      onSubmit={() => remove.mutate({ organization, team, revision: item.revision })}
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
      title={`Add a member to ${team}`}
      description="The new member gets all grants of the team at once."
      action="Add to the team"
      error={add.error}
      isPending={add.isPending}
      isReady={login.trim() !== ''}
      onSubmit={() => add.mutate({ organization, team, login: login.trim() })}
      onClose={onClose}
    >
      <LoginField
        organization={organization}
        label="Login"
        value={login}
        maxLength={100}
        required
        hint={`A member of ${organization}`}
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
        title={`Remove ${login} from ${team}?`}
        description="They lose the grants of the team. Their running updates that are no longer permitted lose their lock."
        action="Remove from the team"
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
      title={isAdmin ? `Make ${login} an ordinary member of ${team}?` : `Make ${login} an admin of ${team}?`}
      description={
        isAdmin
          ? 'They can no longer choose its members or create its tokens.'
          : 'They can choose its members and create its tokens, which have the grants of the team.'
      }
      action={isAdmin ? 'Make an ordinary member' : 'Make an admin of the team'}
      error={set.error}
      isPending={set.isPending}
      onSubmit={() => set.mutate({ organization, team, login, isAdmin: !isAdmin })}
      onClose={onClose}
    />
  );
}
