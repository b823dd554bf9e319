import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { roleWords } from '../../access/access-words.ts';
import type { MemberItem } from '../../platform/app/contract.ts';
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
      hint={`A ${role} ${roleWords[role]}.`}
      onChange={({ target }) => onChange(target.value as Role)}
    />
  );
}

export function AddMemberDialog({ onClose, organization }: DialogProps) {
  const [login, setLogin] = useState('');
  const [role, setRole] = useState<Role>('member');
  const add = useMutation(trpc.members.add.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title="Add a member"
      description={`Somebody who has an account on this server gets the role in ${organization} at once.`}
      action="Add the member"
      error={add.error}
      isPending={add.isPending}
      isReady={login.trim() !== ''}
      onSubmit={() => add.mutate({ organization, login: login.trim(), role })}
      onClose={onClose}
    >
      <TextField
        label="Login"
        value={login}
        maxLength={100}
        required
        hint="Who has no account yet gets one from an operator, or by signing in with your identity provider."
        onChange={({ target }) => setLogin(target.value)}
      />
      <RoleField role={role} onChange={setRole} />
    </ActionDialog>
  );
}

export function InviteMemberDialog({ onClose, organization }: DialogProps) {
  const [login, setLogin] = useState('');
  const [role, setRole] = useState<Role>('member');
  const invite = useMutation(trpc.members.invite.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title="Invite a member"
      description={`Who has this login gets the role in ${organization} by accepting, within 14 days, under “Your account”.`}
      action="Invite"
      error={invite.error}
      isPending={invite.isPending}
      isReady={login.trim() !== ''}
      onSubmit={() => invite.mutate({ organization, login: login.trim(), role })}
      onClose={onClose}
    >
      <TextField
        label="Login"
        value={login}
        maxLength={100}
        required
        hint="They need an account on this server already. You are not told whether there is one: ask them for their login."
        onChange={({ target }) => setLogin(target.value)}
      />
      <RoleField role={role} onChange={setRole} />
    </ActionDialog>
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
    <ActionDialog
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
      {isLess ? <p>Updates of theirs that the new role does not permit lose their lock at once.</p> : null}
    </ActionDialog>
  );
}

export function RemoveMemberDialog({ member, onClose, organization }: MemberDialogProps) {
  const remove = useMutation(trpc.members.remove.mutationOptions(thenRefresh(onClose)));
  return (
    <ActionDialog
      title={`Remove ${member.login}?`}
      description={`${member.login} no longer sees ${organization}, and leaves its teams. Grants to them end for good, also for the case of a return; running updates of theirs lose their lock. The account and its other organizations stay.`}
      action="Remove the member"
      isDanger
      error={remove.error}
      isPending={remove.isPending}
      onSubmit={() => remove.mutate({ organization, login: member.login })}
      onClose={onClose}
    />
  );
}
