import { Outlet, useParams } from '@tanstack/react-router';
import { useMe } from '../app/me.ts';
import { SectionLayout, type SectionLink } from '../app/section-layout.tsx';

interface OrganizationPage extends SectionLink {
  /** Only for those who administer the organization. */
  readonly isForAdmins?: boolean;
}

/** The pages of an organization, in the order of their links. */
const pages: readonly OrganizationPage[] = [
  { name: 'Members', group: 'People', link: { to: '/$organization/~/members' } },
  { name: 'Teams', group: 'People', link: { to: '/$organization/~/teams' } },
  { name: 'Roles', group: 'People', link: { to: '/$organization/~/roles' } },
  { name: 'Tokens', group: 'Machines', link: { to: '/$organization/~/tokens' } },
  { name: 'Trust policies', group: 'Machines', link: { to: '/$organization/~/trust-policies' }, isForAdmins: true },
  { name: 'Rules', group: 'Updates', link: { to: '/$organization/~/rules' }, isForAdmins: true },
  { name: 'Approvals', group: 'Updates', link: { to: '/$organization/~/approvals' } },
  { name: 'Policies', group: 'Updates', link: { to: '/$organization/~/policies' } },
  { name: 'Webhooks', group: 'Updates', link: { to: '/$organization/~/webhooks' }, isForAdmins: true },
  { name: 'Audit log', group: 'Records', link: { to: '/$organization/~/audit' }, isForAdmins: true },
  { name: 'Limits', group: 'Records', link: { to: '/$organization/~/limits' }, isForAdmins: true },
];

/** The pages of an organization, with links between those that the user may see. */
export function OrganizationLayout() {
  const { organization } = useParams({ from: '/$organization/~' });
  const isAdmin = useMayManage(organization);
  const links = pages
    .filter(({ isForAdmins = false }) => isAdmin || !isForAdmins)
    .map(({ group = '', link, name }) => ({ name, group, link: { ...link, params: { organization } } }));
  return (
    <SectionLayout label="Pages of the organization" links={links}>
      <Outlet />
    </SectionLayout>
  );
}

/** Whether the user administers the organization. */
export function useMayManage(organization: string): boolean {
  const me = useMe();
  // Operators administer no organization by that.
  return me?.organizations.some(({ name, role }) => name === organization && role === 'admin') ?? false;
}
