import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { PartProblem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { InvitationItem } from '../../platform/app/procedure-types.ts';
import { RowMenu } from '../../platform/app/row-menu.tsx';
import { trpc } from '../../platform/app/trpc.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import { MenuItem } from '../../platform/ui/menu.tsx';
import { Section } from '../../platform/ui/page.tsx';
import { type Column, Table } from '../../platform/ui/table.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { invitationTexts } from '../texts.tsx';
import { WithdrawInvitationDialog } from './member-dialogs.tsx';

/** Open invitations. Renders nothing if there are none. */
export function InvitationList({ organization }: { readonly organization: string }) {
  const [asked, setAsked] = useState<string | null>(null);
  const query = useQuery(trpc.members.invitations.queryOptions({ organization }));
  const problem = useProblem(query);
  const { data } = query;
  if (problem)
    return (
      <Section title={invitationTexts.invitations}>
        <PartProblem {...problem} />
      </Section>
    );
  if (data === undefined || data.items.length === 0) return null;
  return (
    <Section title={invitationTexts.invitations} lead={invitationTexts.lead}>
      <Table
        label={invitationTexts.invitations}
        columns={columnsOf(setAsked)}
        items={data.items}
        keyOf={({ login }) => login}
        empty={null}
      />
      {asked === null ? null : (
        <WithdrawInvitationDialog organization={organization} login={asked} onClose={() => setAsked(null)} />
      )}
    </Section>
  );
}

function columnsOf(withdraw: (login: string) => void): Column<InvitationItem>[] {
  return [
    { name: invitationTexts.login, isTitle: true, cell: ({ login }) => login },
    {
      name: invitationTexts.role,
      cell: ({ role }) => <Badge tone={role === 'admin' ? 'accent' : 'neutral'}>{role}</Badge>,
    },
    { name: invitationTexts.invitedBy, cell: ({ invitedBy }) => invitedBy },
    { name: invitationTexts.expires, align: 'right', cell: ({ until }) => <Time at={until} /> },
    {
      name: invitationTexts.actions,
      isActions: true,
      cell: ({ login }) => (
        <RowMenu of={invitationTexts.invitationFor(login)}>
          <MenuItem onSelect={() => withdraw(login)}>{invitationTexts.withdraw}</MenuItem>
        </RowMenu>
      ),
    },
  ];
}
