import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { ManagedDialog } from '../platform/app/managed-dialog.tsx';
import { ManagedMark } from '../platform/app/managed-mark.tsx';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { AccessPolicy } from '../platform/app/procedure-types.ts';
import { thenRefresh } from '../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../platform/app/trpc.ts';
import { useEdit } from '../platform/app/use-edit.ts';
import { Button } from '../platform/ui/button.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { SelectField } from '../platform/ui/field.tsx';
import { Page } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { lostPermissions, memberPermissions, withNeeds } from './default-permissions.ts';
import { PermissionChoice, PermissionSet } from './permission-set.tsx';
import { accessTexts } from './texts.tsx';

const route = getRouteApi('/$organization/~/access');

export function AccessPage() {
  const { organization } = route.useParams();
  const [asked, setAsked] = useState<'decrypt' | 'defaults' | null>(null);
  const query = useQuery(trpc.access.policy.queryOptions({ organization }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const policy = query.data;
  return (
    <Page
      title={
        <>
          {accessTexts.title} <ManagedMark organization={organization} kind="Organization" object={organization} />
        </>
      }
      lead={accessTexts.lead}
    >
      {policy === undefined ? (
        <Skeleton width={320} />
      ) : (
        <FactList>
          <FactRow name={accessTexts.rolePermissions}>
            <DefaultLabels defaults={policy.defaultPermissions} />
            <Button size="small" aria-label={accessTexts.editRolePermissions} onClick={() => setAsked('defaults')}>
              {accessTexts.edit}
            </Button>
          </FactRow>
          <FactRow name={accessTexts.secrets}>
            {policy.decryptByRole ? accessTexts.decryptedByRole : accessTexts.decryptedByGrant}
            <Button size="small" onClick={() => setAsked('decrypt')}>
              {policy.decryptByRole ? accessTexts.requireGrant : accessTexts.allowByRole}
            </Button>
          </FactRow>
        </FactList>
      )}
      {policy !== undefined && asked === 'decrypt' ? (
        <DecryptDialog organization={organization} policy={policy} onClose={() => setAsked(null)} />
      ) : null}
      {policy !== undefined && asked === 'defaults' ? (
        <DefaultsDialog organization={organization} policy={policy} onClose={() => setAsked(null)} />
      ) : null}
    </Page>
  );
}

function DefaultLabels({ defaults }: { readonly defaults: AccessPolicy['defaultPermissions'] }) {
  if (defaults === null) return <span>{accessTexts.allPermissions}</span>;
  if (withNeeds(defaults).length === 0) return <span>{accessTexts.nonePermissions}</span>;
  return (
    <>
      <span>{accessTexts.atMost}</span>
      <PermissionSet names={withNeeds(defaults)} />
    </>
  );
}

interface DialogProps {
  readonly organization: string;
  readonly onClose: () => void;
}

function DecryptDialog({ onClose, organization, policy }: DialogProps & { readonly policy: AccessPolicy }) {
  const [isOn] = useState(policy.decryptByRole);
  const { base, dialog } = useEdit({ item: policy, draftOf: () => ({}), read: () => readPolicy(organization) });
  const change = useMutation(trpc.access.changePolicy.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Organization', object: organization }}
      title={isOn ? accessTexts.requireGrantTitle : accessTexts.allowDecryption}
      description={isOn ? accessTexts.requireGrantLead : accessTexts.allowDecryptionLead}
      action={isOn ? accessTexts.requireGrant : accessTexts.allowByRole}
      isDanger={isOn}
      {...(isOn ? { typed: organization } : {})}
      {...dialog(change)}
      onSubmit={() => change.mutate({ organization, revision: base.revision, decryptByRole: !isOn })}
      onClose={onClose}
    />
  );
}

const ways = [
  ['all', accessTexts.allOfRole],
  ['some', accessTexts.atMostSome],
  ['none', accessTexts.noneOfRole],
] as const;
type Way = (typeof ways)[number][0];

function draftOf({ defaultPermissions }: AccessPolicy): { readonly way: Way; readonly names: readonly string[] } {
  const names = withNeeds(defaultPermissions);
  return { way: defaultPermissions === null ? 'all' : names.length === 0 ? 'none' : 'some', names };
}

function readPolicy(organization: string): Promise<AccessPolicy> {
  return apiClient.access.policy.query({ organization });
}

function DefaultsDialog({ onClose, organization, policy }: DialogProps & { readonly policy: AccessPolicy }) {
  const {
    base,
    change: edit,
    dialog,
    draft: { names, way },
  } = useEdit({ item: policy, draftOf, read: () => readPolicy(organization) });
  const before = base.defaultPermissions;
  const change = useMutation(trpc.access.changePolicy.mutationOptions(thenRefresh(onClose)));
  const after = way === 'all' ? null : way === 'none' ? [] : [...withNeeds(names)];
  const lost = lostPermissions(before, after);
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Organization', object: organization }}
      title={accessTexts.editRolePermissions}
      description={accessTexts.editRolePermissionsLead}
      action={lost.length > 0 ? accessTexts.removePermissions : accessTexts.save}
      isDanger={lost.length > 0}
      {...(lost.length > 0 ? { typed: organization } : {})}
      isReady={way !== 'some' || names.length > 0}
      {...dialog(change)}
      onSubmit={() => change.mutate({ organization, revision: base.revision, defaultPermissions: after })}
      onClose={onClose}
    >
      <SelectField
        label={accessTexts.rolePermissions}
        value={way}
        options={ways}
        onChange={({ target }) => edit({ way: target.value as Way })}
      />
      {way === 'some' ? (
        <PermissionChoice
          label={accessTexts.permissions}
          names={withNeeds(names)}
          of={memberPermissions}
          onChange={(chosen) => edit({ names: chosen })}
        />
      ) : null}
      {lost.length > 0 ? <p>{accessTexts.lose(<b>{lost.join(', ')}</b>)}</p> : null}
    </ManagedDialog>
  );
}
