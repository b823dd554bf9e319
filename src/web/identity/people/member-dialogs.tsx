import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { roleLabels } from '../../access/access-labels.ts';
import { type Role, roles } from '../../platform/app/list-search.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import type { MemberItem } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit } from '../../platform/app/use-edit.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import { memberDialogTexts } from '../texts.tsx';

interface DialogProps {
  readonly organization: string;
  readonly onClose: () => void;
}

function RoleField({ onChange, role }: { readonly role: Role; readonly onChange: (role: Role) => void }) {
  return (
    <SelectField
      label={memberDialogTexts.role}
      value={role}
      options={roles.map((each) => [each, each])}
      hint={memberDialogTexts.roleHint(role, roleLabels[role])}
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
        label={memberDialogTexts.login}
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
      title={memberDialogTexts.add}
      description={memberDialogTexts.addLead(organization)}
      action={memberDialogTexts.addAction}
      hint={memberDialogTexts.addHint}
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
      title={memberDialogTexts.invite}
      description={memberDialogTexts.inviteLead(organization)}
      action={memberDialogTexts.inviteAction}
      hint={memberDialogTexts.inviteHint}
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
      title={memberDialogTexts.withdraw(login)}
      description={memberDialogTexts.withdrawLead(login)}
      action={memberDialogTexts.withdrawAction}
      stay={memberDialogTexts.withdrawStay}
      error={withdraw.error}
      isPending={withdraw.isPending}
      onSubmit={() => withdraw.mutate({ organization, login })}
      onClose={onClose}
    />
  );
}

/** Other logins may contain the login. */
const maxFound = 200;

interface MemberDialogProps extends DialogProps {
  readonly member: MemberItem;
}

export function ChangeRoleDialog({ member, onClose, organization }: MemberDialogProps) {
  const { base, change, dialog, draft } = useEdit({
    item: { role: member.role },
    draftOf: ({ role }) => ({ role }),
    read: () => readRole(organization, member.login),
  });
  const { role } = draft;
  const set = useMutation(trpc.members.setRole.mutationOptions(thenRefresh(onClose)));
  const isLess = roles.indexOf(role) < roles.indexOf(base.role);
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Member', object: member.login }}
      title={memberDialogTexts.changeRole(member.login)}
      description={memberDialogTexts.changeRoleLead(member.login, base.role)}
      action={memberDialogTexts.changeRoleAction}
      {...dialog(set)}
      isReady={role !== base.role}
      onSubmit={() => set.mutate({ organization, login: member.login, role, seen: base.role })}
      onClose={onClose}
    >
      <RoleField role={role} onChange={(chosen) => change({ role: chosen })} />
      {isLess ? <p>{memberDialogTexts.lessRole}</p> : null}
    </ManagedDialog>
  );
}

/** Rejects if there is no such member. */
async function readRole(organization: string, login: string): Promise<{ readonly role: Role }> {
  const { items } = await apiClient.members.list.query({ organization, text: login, limit: maxFound });
  const found = items.find((each) => each.login === login);
  if (found === undefined) throw new Error(memberDialogTexts.noMember(login));
  return found;
}

export function RemoveMemberDialog({ member, onClose, organization }: MemberDialogProps) {
  const remove = useMutation(trpc.members.remove.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Member', object: member.login }}
      title={memberDialogTexts.remove(member.login)}
      description={memberDialogTexts.removeLead(member.login, organization)}
      action={memberDialogTexts.removeAction}
      isDanger
      error={remove.error}
      isPending={remove.isPending}
      onSubmit={() => remove.mutate({ organization, login: member.login })}
      onClose={onClose}
    />
  );
}
