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
/** Lists of rules say which rules are managed. */
export type ManagedKind = MarkedKind | 'UpdateRule' | 'RetentionRule';

/**
 * Marks an object that a configuration declares, for admins, who could change the object. `kind`, `object`: as in the record of the
 * configuration.
 */
export function ManagedMark({
  kind,
  object,
  organization,
}: {
  readonly organization: string;
  readonly kind: MarkedKind;
  readonly object: string;
}) {
  return useIsManaged({ organization, kind, object }) ? <ManagedBadge /> : null;
}

/** Undefined: unknown, or hidden from this user. */
function useIsManaged({
  kind,
  object,
  organization,
}: {
  readonly organization: string;
  readonly kind: MarkedKind;
  readonly object: string;
}): boolean | undefined {
  const enabled = useMayManage(organization);
  const managed = useQuery(trpc.access.managed.queryOptions({ organization, kind }, { enabled, staleTime: staleMs }));
  return managed.data?.objects.includes(object);
}
