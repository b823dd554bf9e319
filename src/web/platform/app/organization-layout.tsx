import { Outlet, useParams } from '@tanstack/react-router';
import { useMe } from './me.ts';
import { organizationPages, useMayManage } from './organization-pages.ts';
import { SectionLayout } from './section-layout.tsx';

/** The pages of an organization, with links between those that the user may see. */
export function OrganizationLayout() {
  const { organization } = useParams({ from: '/$organization/~' });
  const isKnown = useMe() !== undefined;
  const isAdmin = useMayManage(organization);
  // Until that is known, the links keep their places and are not shown.
  const links = organizationPages(isAdmin || !isKnown).map(({ group = '', link, name }) => ({
    name,
    group,
    link: { ...link, params: { organization } },
  }));
  return (
    <SectionLayout label="Pages of the organization" links={links} isReady={isKnown}>
      <Outlet />
    </SectionLayout>
  );
}
