import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { ManagedMark } from '../platform/app/managed-mark.tsx';
import { useMayManage } from '../platform/app/organization-pages.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { RoleItem } from '../platform/app/procedure-types.ts';
import { RowMenu } from '../platform/app/row-menu.tsx';
import styles from '../platform/app/settings-page.module.css';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';
import { useEdit, useRemoval } from '../platform/app/use-edit.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { Button } from '../platform/ui/button.tsx';
import { TextArea, TextField } from '../platform/ui/field.tsx';
import { MenuItem } from '../platform/ui/menu.tsx';
import { Page } from '../platform/ui/page.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { PermissionChoice, PermissionSet } from './permission-set.tsx';
import { roleTexts } from './texts.tsx';

const route = getRouteApi('/$organization/~/roles');

type Asked = { readonly what: 'create' } | { readonly what: 'edit' | 'delete'; readonly role: RoleItem };

export function RolesPage() {
  const { organization } = route.useParams();
  const mayManage = useMayManage(organization);
  const [asked, setAsked] = useState<Asked | null>(null);
  const query = useQuery(trpc.roles.list.queryOptions({ organization }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const close = () => setAsked(null);
  const actions: Column<RoleItem> = {
    name: roleTexts.actions,
    isActions: true,
    cell: (role) =>
      role.isBuiltIn ? null : (
        <RowMenu of={role.name}>
          <MenuItem onSelect={() => setAsked({ what: 'edit', role })}>{roleTexts.edit}</MenuItem>
          <MenuItem onSelect={() => setAsked({ what: 'delete', role })}>{roleTexts.delete}</MenuItem>
        </RowMenu>
      ),
  };
  return (
    <Page
      title={roleTexts.roles}
      lead={roleTexts.lead}
      actions={
        mayManage ? (
          <Button kind="main" onClick={() => setAsked({ what: 'create' })}>
            <Plus size={16} aria-hidden="true" />
            {roleTexts.create}
          </Button>
        ) : null
      }
    >
      <Table
        label={roleTexts.roles}
        columns={[...columnsOf(organization), ...(mayManage ? [actions] : [])]}
        items={query.data?.items}
        keyOf={({ id }) => id}
        empty={null}
      />
      {asked?.what === 'create' ? <RoleDialog organization={organization} shown={null} onClose={close} /> : null}
      {asked?.what === 'edit' ? <RoleDialog organization={organization} shown={asked.role} onClose={close} /> : null}
      {asked?.what === 'delete' ? (
        <DeleteRoleDialog organization={organization} shown={asked.role} onClose={close} />
      ) : null}
    </Page>
  );
}

const columnsOf = (organization: string): readonly Column<RoleItem>[] => [
  {
    name: roleTexts.name,
    isTitle: true,
    cell: ({ description, id, isBuiltIn, name }) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {name}
          {isBuiltIn ? <Badge>{roleTexts.builtIn}</Badge> : null}
          <ManagedMark organization={organization} kind="Role" object={id} />
        </span>
        <span className={styles['second']}>{isBuiltIn ? description.replace(/^Built in: /, '') : description}</span>
      </span>
    ),
  },
  { name: roleTexts.permissions, cell: ({ permissions }) => <PermissionSet names={permissions} /> },
];

interface DialogProps {
  readonly organization: string;
  readonly onClose: () => void;
}

function draftOf(role: RoleItem | null) {
  return {
    name: role?.name ?? '',
    description: role?.description ?? '',
    permissions: (role?.permissions ?? ['read']) as readonly string[],
  };
}

/** Returns null if the role no longer exists. */
async function readRole(organization: string, id: string | undefined): Promise<RoleItem | null> {
  const { items } = await apiClient.roles.list.query({ organization });
  return items.find((role) => role.id === id) ?? null;
}

/** `role` is null for a new one. */
function RoleDialog({ onClose, organization, shown: role }: DialogProps & { readonly shown: RoleItem | null }) {
  const {
    base,
    change,
    dialog,
    draft: { description, name, permissions },
  } = useEdit({
    item: role,
    draftOf,
    read: () => readRole(organization, role?.id),
  });
  const options = thenRefresh(onClose);
  const create = useMutation(trpc.roles.create.mutationOptions(options));
  const edit = useMutation(trpc.roles.edit.mutationOptions(options));
  const given = { organization, name: name.trim(), description, permissions: [...permissions] };
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Role', object: role?.id ?? null }}
      title={role === null ? roleTexts.create : roleTexts.editTitle(role.name)}
      description={role === null ? roleTexts.createLead : roleTexts.editLead}
      action={role === null ? roleTexts.createAction : roleTexts.save}
      {...dialog(role === null ? create : edit)}
      isReady={name.trim() !== '' && permissions.length > 0}
      onSubmit={() =>
        role === null
          ? create.mutate(given)
          : edit.mutate({ ...given, id: role.id, ...(base === null ? {} : { revision: base.revision }) })
      }
      onClose={onClose}
    >
      <TextField
        label={roleTexts.name}
        value={name}
        maxLength={100}
        required
        onChange={({ target }) => change({ name: target.value })}
      />
      <TextArea
        label={roleTexts.description}
        rows={2}
        value={description}
        maxLength={2_000}
        onChange={({ target }) => change({ description: target.value })}
      />
      <PermissionChoice
        label={roleTexts.permissions}
        names={permissions}
        onChange={(chosen) => change({ permissions: chosen })}
      />
    </ManagedDialog>
  );
}

function DeleteRoleDialog({ onClose, organization, shown }: DialogProps & { readonly shown: RoleItem }) {
  const { dialog, item: role } = useRemoval({
    item: shown,
    read: async () => (await readRole(organization, shown.id)) ?? shown,
  });
  const grants = useQuery(trpc.roles.countGrants.queryOptions({ organization, id: role.id })).data?.grants;
  const remove = useMutation(trpc.roles.delete.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Role', object: role.id }}
      title={roleTexts.deleteTitle(role.name)}
      description={grants === undefined ? roleTexts.lookingForGrants : roleTexts.deleteLead(grants)}
      action={roleTexts.deleteAction}
      isDanger
      {...(grants === undefined || grants === 0 ? {} : { typed: role.name })}
      {...dialog(remove)}
      isReady={grants !== undefined}
      onSubmit={() =>
        remove.mutate({ organization, id: role.id, revision: role.revision, force: grants !== undefined && grants > 0 })
      }
      onClose={onClose}
    >
      <PermissionSet names={role.permissions} />
    </ManagedDialog>
  );
}
