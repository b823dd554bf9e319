import { createRoute, redirect } from '@tanstack/react-router';
import { rootRoute } from '../platform/app/root-route.tsx';
import { pageTexts } from '../platform/texts.tsx';
import { lazyPage } from '../platform/ui/chunks.tsx';
import { parseResourceSearch } from './search-terms.ts';

const searchPage = lazyPage(() => import('./search-page.tsx'), 'SearchPage');

const search = createRoute({
  getParentRoute: () => rootRoute,
  path: '/~/search',
  component: searchPage,
  validateSearch: parseResourceSearch,
  staticData: { crumb: pageTexts.search },
});

const organizationSearch = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/search',
  component: searchPage,
  validateSearch: parseResourceSearch,
  staticData: { crumb: pageTexts.search },
});

/** The link that `pulumi org search` prints. */
const printedSearch = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/resources',
  validateSearch: ({ query }: Record<string, unknown>): { readonly query?: string } =>
    typeof query === 'string' ? { query } : {},
  beforeLoad: ({ params, search: { query } }) => {
    throw redirect({ to: '/$organization/~/search', params, search: query === undefined ? {} : { q: query } });
  },
});

const references = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/references',
  component: lazyPage(() => import('./references/references-page.tsx'), 'ReferencesPage'),
  staticData: { crumb: pageTexts.references },
});

export const searchRoutes = [search, organizationSearch, printedSearch, references] as const;
