import { Outlet, useParams } from '@tanstack/react-router';
import { SectionLayout } from '../app/section-layout.tsx';
import { organizationPages, useMayManage } from './organization-pages.ts';

/** The pages of an organization, with links between those that the user may see. */
export function OrganizationLayout() {
  const { organization } = useParams({ from: '/$organization/~' });
  const isAdmin = useMayManage(organization);
  const links = organizationPages(isAdmin).map(({ group = '', link, name }) => ({
    name,
    group,
    link: { ...link, params: { organization } },
  }));
  return (
    <SectionLayout label="Pages of the organization" links={links}>
      <Outlet />
    </SectionLayout>
  );
}
