import { useMe } from '../app/me.ts';
import type { SectionLink } from '../app/section-layout.tsx';

interface OrganizationPage extends SectionLink {
  /** Only for those who administer the organization. */
  readonly isForAdmins?: boolean;
}

/** The pages of an organization, in the order of their links. */
const pages: readonly OrganizationPage[] = [
  { name: 'Members', link: { to: '/$organization/~/members' } },
  { name: 'Teams', link: { to: '/$organization/~/teams' } },
  { name: 'Roles', link: { to: '/$organization/~/roles' } },
  { name: 'Tokens', link: { to: '/$organization/~/tokens' } },
  { name: 'Access', link: { to: '/$organization/~/access' }, isForAdmins: true },
  { name: 'Trust policies', link: { to: '/$organization/~/trust-policies' }, isForAdmins: true },
  { name: 'Audit log', link: { to: '/$organization/~/audit' }, isForAdmins: true },
  { name: 'Rules', link: { to: '/$organization/~/rules' }, isForAdmins: true },
  { name: 'Approvals', link: { to: '/$organization/~/approvals' } },
  { name: 'Policies', link: { to: '/$organization/~/policies' } },
  { name: 'Webhooks', link: { to: '/$organization/~/webhooks' }, isForAdmins: true },
  { name: 'Limits', link: { to: '/$organization/~/limits' }, isForAdmins: true },
  { name: 'Deleted stacks', link: { to: '/$organization/~/deleted-stacks' }, isForAdmins: true },
];

/** The pages that a member sees, or an admin. */
export function organizationPages(isAdmin: boolean): readonly OrganizationPage[] {
  return pages.filter(({ isForAdmins = false }) => isAdmin || !isForAdmins);
}

/** Whether the user administers the organization. */
export function useMayManage(organization: string): boolean {
  const me = useMe();
  // Operators administer no organization by that.
  return me?.organizations.some(({ name, role }) => name === organization && role === 'admin') ?? false;
}
