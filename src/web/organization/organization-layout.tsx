import { Outlet, useParams } from '@tanstack/react-router';
import { useMe } from '../app/me.ts';
import { SectionLayout, type SectionLink } from '../app/section-layout.tsx';

interface OrganizationPage extends SectionLink {
  /** Only for those who administer the organization. */
  readonly isForAdmins?: boolean;
}

/** The pages of an organization, in the order of their links. */
const pages: readonly OrganizationPage[] = [];

/** The pages of an organization, with links between those that the user may see. */
export function OrganizationLayout() {
  const { organization } = useParams({ from: '/$organization/~' });
  const isAdmin = useMayManage(organization);
  const links = pages.filter(({ isForAdmins = false }) => isAdmin || !isForAdmins);
  return (
    <SectionLayout label="Pages of the organization" links={links}>
      <Outlet />
    </SectionLayout>
  );
}

/** Whether the user administers the organization. */
export function useMayManage(organization: string): boolean {
  const me = useMe();
  if (me === undefined) return false;
  return me.isOperator || me.organizations.some(({ name, role }) => name === organization && role === 'admin');
}
