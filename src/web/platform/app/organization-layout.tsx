import { Outlet, useMatches, useParams } from '@tanstack/react-router';
import { listTexts, pageTexts } from '../texts.tsx';
import { useMe } from './me.ts';
import { organizationPages, useMayManage } from './organization-pages.ts';
import { usePageTitle } from './page-title.ts';
import { SectionLayout } from './section-layout.tsx';

/** Only links to the pages that the user may see. */
export function OrganizationLayout() {
  const { organization } = useParams({ from: '/$organization/~' });
  const crumb = useMatches().findLast(({ staticData }) => staticData.crumb !== undefined)?.staticData.crumb;
  const { team } = useParams({ strict: false });
  const page = team ?? crumb;
  usePageTitle(page === undefined ? organization : pageTexts.pageOf(page, organization));
  const isKnown = useMe() !== undefined;
  const isAdmin = useMayManage(organization);
  // Until the role is known, the links take up space but are invisible.
  const links = organizationPages(isAdmin || !isKnown).map(({ group = '', link, name }) => ({
    name,
    group,
    link: { ...link, params: { organization } },
  }));
  return (
    <SectionLayout label={listTexts.pagesOfOrganization} links={links} isReady={isKnown}>
      <Outlet />
    </SectionLayout>
  );
}
