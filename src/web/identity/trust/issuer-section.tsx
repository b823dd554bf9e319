import { useMutation, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { ManagedMark } from '../../platform/app/managed-mark.tsx';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { IssuerDetails, IssuerItem } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useRemoval } from '../../platform/app/use-edit.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { Section } from '../../platform/ui/page.tsx';
import { duration } from '../../platform/ui/relative-time.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { issuerTexts } from '../texts.tsx';
import { DeleteIssuerDialog, IssuerDialog } from './issuer-dialogs.tsx';
import { PolicyDialog } from './policy-dialog.tsx';
import { type Policy, toSent } from './policy-form.ts';

type Asked =
  | { readonly what: 'edit' | 'delete' | 'add' }
  | { readonly what: 'policy' | 'drop'; readonly policy: Policy };

export function IssuerSection({
  issuer,
  organization,
}: {
  readonly organization: string;
  readonly issuer: IssuerItem;
}) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const query = useQuery(trpc.issuers.get.queryOptions({ organization, id: issuer.id }));
  const problem = useProblem(query);
  const details = query.data;
  const close = () => setAsked(null);
  const columns: Column<Policy>[] = [
    ...columnsOfAll,
    {
      name: issuerTexts.actions,
      isActions: true,
      cell: (policy) => (
        <RowMenu of={issuerTexts.thePolicy}>
          <MenuItem onSelect={() => setAsked({ what: 'policy', policy })}>{issuerTexts.edit}</MenuItem>
          <MenuItem onSelect={() => setAsked({ what: 'drop', policy })}>{issuerTexts.remove}</MenuItem>
        </RowMenu>
      ),
    },
  ];
  return (
    <Section
      title={
        <>
          {issuer.name} <ManagedMark organization={organization} kind="Issuer" object={issuer.id} />
        </>
      }
      lead={issuerTexts.lead({
        url: <code className={styles['pattern']}>{issuer.url}</code>,
        audience: <code>{issuer.audience}</code>,
        isExchangedOnce: issuer.replay === 'once',
        lifetime: duration(issuer.maxSeconds ?? 7_200),
        hasOwnKeys: issuer.hasOwnKeys,
      })}
      actions={
        <>
          <Button disabled={details === undefined} onClick={() => setAsked({ what: 'add' })}>
            <Plus size={16} aria-hidden="true" />
            {issuerTexts.addPolicy}
          </Button>
          <RowMenu of={issuer.name}>
            <MenuItem onSelect={() => setAsked({ what: 'edit' })}>{issuerTexts.edit}</MenuItem>
            <MenuItem onSelect={() => setAsked({ what: 'delete' })}>{issuerTexts.removeIssuer}</MenuItem>
          </RowMenu>
        </>
      }
    >
      {problem ? (
        <Problem {...problem} />
      ) : (
        <Table
          label={issuerTexts.policiesOf(issuer.name)}
          columns={columns}
          items={details?.policies}
          keyOf={({ id }) => id}
          empty={<p className={styles['note']}>{issuerTexts.none}</p>}
        />
      )}
      {asked?.what === 'edit' ? <IssuerDialog organization={organization} issuer={issuer} onClose={close} /> : null}
      {asked?.what === 'delete' ? (
        <DeleteIssuerDialog organization={organization} issuer={issuer} onClose={close} />
      ) : null}
      {details !== undefined && (asked?.what === 'add' || asked?.what === 'policy') ? (
        <PolicyDialog
          organization={organization}
          details={details}
          policy={asked.what === 'policy' ? asked.policy : null}
          onClose={close}
        />
      ) : null}
      {details !== undefined && asked?.what === 'drop' ? (
        <DropPolicyDialog organization={organization} details={details} policy={asked.policy} onClose={close} />
      ) : null}
    </Section>
  );
}

const columnsOfAll: readonly Column<Policy>[] = [
  {
    name: issuerTexts.claims,
    isTitle: true,
    cell: ({ rules }) => (
      <span className={styles['name']}>
        {rules.length === 0 ? issuerTexts.anyClaims : null}
        {rules.map(({ claim, patterns }) => (
          <code key={claim} className={styles['pattern']}>
            {claim} = {issuerTexts.anyOf(patterns)}
          </code>
        ))}
      </span>
    ),
  },
  {
    name: issuerTexts.tokens,
    cell: (policy) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {policy.decision === 'deny' ? <Badge tone="failure">{issuerTexts.denied}</Badge> : null}

          {given(policy)}
        </span>
        {policy.scopes?.map(({ permissions, stacks }) => (
          <span key={stacks + permissions.join()} className={styles['second']}>
            {issuerTexts.onStacks(permissions.join(', '), <code>{stacks}</code>)}
          </span>
        ))}
      </span>
    ),
  },
  {
    name: issuerTexts.lifetime,
    align: 'right',
    cell: ({ maxSeconds }) => (maxSeconds === null ? issuerTexts.sameAsIssuer : duration(maxSeconds)),
  },
];

/** A description of the tokens that a policy gives. */
function given({ isAdmin, owner, tokenType }: Policy): string {
  if (tokenType === 'any') return issuerTexts.anyToken;
  if (tokenType === 'team') return owner === null ? issuerTexts.anyTeamToken : issuerTexts.tokenOfTeam(owner);
  if (tokenType === 'personal') return owner === null ? issuerTexts.anyPersonalToken : issuerTexts.tokenOf(owner);
  if (tokenType === 'service') return issuerTexts.serviceToken;
  return issuerTexts.organizationToken(isAdmin);
}

/** If another user has edited the policy, it counts as a different one and is kept. */
function DropPolicyDialog({
  details,
  onClose,
  organization,
  policy,
}: {
  readonly organization: string;
  readonly details: IssuerDetails;
  readonly policy: Policy;
  readonly onClose: () => void;
}) {
  const { dialog, item } = useRemoval<IssuerDetails>({
    item: details,
    read: () => apiClient.issuers.get.query({ organization, id: details.issuer.id }),
  });
  const { issuer, policies, version } = item;
  const set = useMutation(trpc.issuers.setPolicies.mutationOptions(thenRefresh(onClose)));
  const left = policies.filter(({ id }) => id !== policy.id).map(toSent);
  const isThere = left.length < policies.length;
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Issuer', object: issuer.id }}
      title={issuerTexts.removePolicy}
      description={policy.decision === 'deny' ? issuerTexts.removePolicyDenied : issuerTexts.removePolicyLead}
      action={issuerTexts.removePolicyAction}
      isDanger
      {...dialog(set)}
      isReady={isThere}
      onSubmit={() => set.mutate({ organization, id: issuer.id, version, policies: left })}
      onClose={onClose}
    >
      {isThere ? null : <p>{issuerTexts.removePolicyGone}</p>}
    </ManagedDialog>
  );
}
