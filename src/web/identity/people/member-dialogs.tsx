import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { roleLabels } from '../../access/access-labels.ts';
import type { MemberItem } from '../../platform/app/contract.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { type Role, roles } from '../../platform/app/settings-search.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';

interface DialogProps {
  readonly organization: string;
  readonly onClose: () => void;
}

function RoleField({ onChange, role }: { readonly role: Role; readonly onChange: (role: Role) => void }) {
  return (
    <SelectField
      label="Role"
      value={role}
      options={roles.map((each) => [each, each])}
      hint={`A ${role} ${roleLabels[role]}.`}
      onChange={({ target }) => onChange(target.value as Role)}
    />
  );
}

interface NewMemberProps {
  readonly title: string;
  readonly description: string;
  readonly action: string;
  readonly hint: string;
  readonly sending: { readonly error: { readonly message: string } | null; readonly isPending: boolean };
  readonly onSubmit: (login: string, role: Role) => void;
  readonly onClose: () => void;
}

/** Asks for a login and a role. */
function NewMemberDialog({ action, description, hint, onClose, onSubmit, sending, title }: NewMemberProps) {
  const [login, setLogin] = useState('');
  const [role, setRole] = useState<Role>('member');
  return (
    <ActionDialog
      title={title}
      description={description}
      action={action}
      error={sending.error}
      isPending={sending.isPending}
      isReady={login.trim() !== ''}
      onSubmit={() => onSubmit(login.trim(), role)}
      onClose={onClose}
    >
      <TextField
        label="Login"
        value={login}
        maxLength={100}
        required
        hint={hint}
        onChange={({ target }) => setLogin(target.value)}
      />
      <RoleField role={role} onChange={setRole} />
    </ActionDialog>
  );
}

export function AddMemberDialog({ onClose, organization }: DialogProps) {
  const add = useMutation(trpc.members.add.mutationOptions(thenRefresh(onClose)));
  return (
    <NewMemberDialog
      title="Add a member"
      description={`A user with an account on this server gets the role in ${organization} at once.`}
      action="Add the member"
      hint="Users without an account get one from an operator, or by signing in with your identity provider."
      sending={add}
      onSubmit={(login, role) => add.mutate({ organization, login, role })}
      onClose={onClose}
    />
  );
}

export function InviteMemberDialog({ onClose, organization }: DialogProps) {
  const invite = useMutation(trpc.members.invite.mutationOptions(thenRefresh(onClose)));
  return (
    <NewMemberDialog
      title="Invite a member"
      description={`The user with this login gets the role in ${organization} by accepting within 14 days, under “Your account”.`}
      action="Invite"
      hint="The user must already have an account on this server. This page does not reveal whether a login exists: ask the user for it."
      sending={invite}
      onSubmit={(login, role) => invite.mutate({ organization, login, role })}
      onClose={onClose}
    />
  );
}

export function WithdrawInvitationDialog({
  login,
  onClose,
  organization,
}: DialogProps & {
  readonly login: string;
}) {
  const withdraw = useMutation(trpc.members.withdraw.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={`Withdraw the invitation for ${login}?`}
      description={`${login} can then no longer accept it.`}
      action="Withdraw the invitation"
      stay="Keep it"
      error={withdraw.error}
      isPending={withdraw.isPending}
      onSubmit={() => withdraw.mutate({ organization, login })}
      onClose={onClose}
    />
  );
}

interface MemberDialogProps extends DialogProps {
  readonly member: MemberItem;
}

export function ChangeRoleDialog({ member, onClose, organization }: MemberDialogProps) {
  const [role, setRole] = useState<Role>(member.role);
  const change = useMutation(trpc.members.setRole.mutationOptions(thenRefresh(onClose)));
  const isLess = roles.indexOf(role) < roles.indexOf(member.role);
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Member', object: member.login }}
      title={`Change the role of ${member.login}`}
      description={`${member.login} is ${member.role}.`}
      action="Change the role"
      error={change.error}
      isPending={change.isPending}
      isReady={role !== member.role}
      onSubmit={() => change.mutate({ organization, login: member.login, role })}
      onClose={onClose}
    >
      <RoleField role={role} onChange={setRole} />
      {isLess ? <p>Running updates that the new role does not permit lose their lock at once.</p> : null}
    </ManagedDialog>
  );
}

export function RemoveMemberDialog({ member, onClose, organization }: MemberDialogProps) {
  const remove = useMutation(trpc.members.remove.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Member', object: member.login }}
      title={`Remove ${member.login}?`}
      description={`${member.login} no longer sees ${organization}, and leaves its teams. Their grants are deleted, even if they rejoin later, and their running updates lose their lock. The account and its other memberships stay.`}
      action="Remove the member"
      isDanger
      error={remove.error}
      isPending={remove.isPending}
      onSubmit={() => remove.mutate({ organization, login: member.login })}
      onClose={onClose}
    />
  );
}
