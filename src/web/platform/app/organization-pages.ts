import { useMe } from './me.ts';
import type { SectionLink } from './section-layout.tsx';

interface OrganizationPage extends SectionLink {
  /** Only for admins of the organization. */
  readonly isForAdmins?: boolean;
}

/** The pages of an organization, in the order of their links. */
const pages: readonly OrganizationPage[] = [
  { name: 'Members', group: 'People', link: { to: '/$organization/~/members' } },
  { name: 'Teams', group: 'People', link: { to: '/$organization/~/teams' } },
  { name: 'Roles', group: 'People', link: { to: '/$organization/~/roles' } },
  { name: 'Access', group: 'People', link: { to: '/$organization/~/access' }, isForAdmins: true },
  { name: 'Tokens', group: 'Machines', link: { to: '/$organization/~/tokens' } },
  { name: 'Trust policies', group: 'Machines', link: { to: '/$organization/~/trust-policies' }, isForAdmins: true },
  { name: 'Rules', group: 'Updates', link: { to: '/$organization/~/rules' }, isForAdmins: true },
  { name: 'Approvals', group: 'Updates', link: { to: '/$organization/~/approvals' } },
  { name: 'Policies', group: 'Updates', link: { to: '/$organization/~/policies' } },
  { name: 'Webhooks', group: 'Updates', link: { to: '/$organization/~/webhooks' }, isForAdmins: true },
  { name: 'Audit log', group: 'Records', link: { to: '/$organization/~/audit' }, isForAdmins: true },
  { name: 'Limits', group: 'Records', link: { to: '/$organization/~/limits' }, isForAdmins: true },
  { name: 'Imports', group: 'Records', link: { to: '/$organization/~/imports' }, isForAdmins: true },
  { name: 'Deleted stacks', group: 'Records', link: { to: '/$organization/~/deleted-stacks' }, isForAdmins: true },
];

/** The pages that a member or an admin sees. */
export function organizationPages(isAdmin: boolean): readonly OrganizationPage[] {
  return pages.filter(({ isForAdmins = false }) => isAdmin || !isForAdmins);
}

/** Whether the user administers the organization. */
export function useMayManage(organization: string): boolean {
  const me = useMe();
  // Being an operator does not make a user an admin of any organization.
  return me?.organizations.some(({ name, role }) => name === organization && role === 'admin') ?? false;
}
