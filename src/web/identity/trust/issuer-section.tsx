import { useMutation, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';
import type { IssuerDetails, IssuerItem } from '../../platform/app/contract.ts';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import { ManagedMark } from '../../platform/app/managed-mark.tsx';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import styles from '../../platform/app/settings-page.module.css';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { Section } from '../../platform/ui/page.tsx';
import { duration } from '../../platform/ui/relative-time.ts';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { DeleteIssuerDialog, IssuerDialog } from './issuer-dialogs.tsx';
import { PolicyDialog } from './policy-dialog.tsx';
import { type Policy, toSent } from './policy-form.ts';

type Asked =
  | { readonly what: 'edit' | 'delete' | 'add' }
  | { readonly what: 'policy' | 'drop'; readonly policy: Policy };

/** An issuer with its policies. */
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
      name: 'Actions',
      isActions: true,
      cell: (policy) => (
        <RowMenu of="the policy">
          <MenuItem onSelect={() => setAsked({ what: 'policy', policy })}>Edit…</MenuItem>
          <MenuItem onSelect={() => setAsked({ what: 'drop', policy })}>Remove…</MenuItem>
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
      lead={
        <>
          <code className={styles['pattern']}>{issuer.url}</code> for <code>{issuer.audience}</code>.{' '}
          {issuer.replay === 'once' ? 'Each id token is exchanged once' : 'Id tokens can be exchanged again'}; its runs
          get tokens for at most {duration(issuer.maxSeconds ?? 7_200)}
          {issuer.hasOwnKeys ? '; its keys were entered manually' : ''}.
        </>
      }
      actions={
        <>
          <Button disabled={details === undefined} onClick={() => setAsked({ what: 'add' })}>
            <Plus size={16} aria-hidden="true" />
            Add a policy
          </Button>
          <RowMenu of={issuer.name}>
            <MenuItem onSelect={() => setAsked({ what: 'edit' })}>Edit…</MenuItem>
            <MenuItem onSelect={() => setAsked({ what: 'delete' })}>Remove the issuer…</MenuItem>
          </RowMenu>
        </>
      }
    >
      {problem ? (
        <Problem {...problem} />
      ) : (
        <Table
          label={`Policies of ${issuer.name}`}
          columns={columns}
          items={details?.policies}
          keyOf={({ id }) => id}
          empty={<p className={styles['note']}>No policies: its runs get no tokens.</p>}
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
    name: 'Claims',
    isTitle: true,
    cell: ({ rules }) => (
      <span className={styles['name']}>
        {rules.length === 0 ? 'any claims' : null}
        {rules.map(({ claim, patterns }) => (
          <code key={claim} className={styles['pattern']}>
            {claim} = {patterns.join(' or ')}
          </code>
        ))}
      </span>
    ),
  },
  {
    name: 'Tokens',
    cell: (policy) => (
      <span className={styles['name']}>
        <span className={styles['badges']}>
          {policy.decision === 'deny' ? <Badge tone="failure">denied</Badge> : null}
          {policy.decision === 'deny' ? '' : ''}
          {given(policy)}
        </span>
        {policy.scopes?.map(({ permissions, stacks }) => (
          <span key={stacks + permissions.join()} className={styles['second']}>
            {permissions.join(', ')} on <code>{stacks}</code>
          </span>
        ))}
      </span>
    ),
  },
  {
    name: 'Lifetime',
    align: 'right',
    isMinor: true,
    cell: ({ maxSeconds }) => (maxSeconds === null ? 'same as the issuer' : duration(maxSeconds)),
  },
];

/** A description of the tokens that a policy gives. */
function given({ isAdmin, owner, tokenType }: Policy): string {
  if (tokenType === 'any') return 'any token';
  if (tokenType === 'team') return owner === null ? 'any team token' : `a token of the team ${owner}`;
  if (tokenType === 'personal') return owner === null ? 'any personal token' : `a token of ${owner}`;
  if (tokenType === 'service') return 'a service token';
  return `an organization token${isAdmin ? ', with the role admin if requested' : ''}`;
}

function DropPolicyDialog({
  details: { issuer, policies, version },
  onClose,
  organization,
  policy,
}: {
  readonly organization: string;
  readonly details: IssuerDetails;
  readonly policy: Policy;
  readonly onClose: () => void;
}) {
  const set = useMutation(trpc.issuers.setPolicies.mutationOptions(thenRefresh(onClose)));
  const left = policies.filter(({ id }) => id !== policy.id).map(toSent);
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Issuer', object: issuer.id }}
      title="Remove this policy?"
      description={
        policy.decision === 'deny'
          ? 'The other policies then decide about runs that it denied.'
          : 'Tokens issued by it end at once, and updates that run with them lose their lock.'
      }
      action="Remove the policy"
      isDanger
      error={set.error}
      isPending={set.isPending}
      onSubmit={() => set.mutate({ organization, id: issuer.id, version, policies: left })}
      onClose={onClose}
    />
  );
}
