import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../app/root-route.tsx';
import { parseResourceSearch } from './search-terms.ts';

const searchPage = lazyRouteComponent(() => import('./search-page.tsx'), 'SearchPage');

const search = createRoute({
  getParentRoute: () => rootRoute,
  path: '/~/search',
  component: searchPage,
  validateSearch: parseResourceSearch,
  staticData: { crumb: 'Search' },
});

const organizationSearch = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/search',
  component: searchPage,
  validateSearch: parseResourceSearch,
  staticData: { crumb: 'Search' },
});

const references = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/references',
  component: lazyRouteComponent(() => import('../references/references-page.tsx'), 'ReferencesPage'),
  staticData: { crumb: 'References' },
});

/** Pages over all stacks. */
export const searchRoutes = [search, organizationSearch, references] as const;
