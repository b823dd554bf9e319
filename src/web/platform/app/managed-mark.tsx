import { useQuery } from '@tanstack/react-query';
import { ManagedBadge } from '../ui/managed-badge.tsx';
import { useMayManage } from './organization-pages.ts';
import { trpc } from './trpc.ts';

const staleMs = 60_000;

type MarkedKind =
  | 'Organization'
  | 'Member'
  | 'Role'
  | 'Team'
  | 'Issuer'
  | 'Grant'
  | 'PolicyGroup'
  | 'Webhook'
  | 'StackWebhook';

/** Marks an object that a configuration declares, for admins, who could change it. `kind`, `object`: as the configuration's record has them. */
export function ManagedMark({
  kind,
  object,
  organization,
}: {
  readonly organization: string;
  readonly kind: MarkedKind;
  readonly object: string;
}) {
  const enabled = useMayManage(organization);
  const managed = useQuery(trpc.access.managed.queryOptions({ organization, kind }, { enabled, staleTime: staleMs }));
  return managed.data?.objects.includes(object) ? <ManagedBadge /> : null;
}
