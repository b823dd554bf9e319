import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from '../root-route.tsx';
import { parseCiSearch } from './ci-search.ts';

const ci = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/ci',
  component: lazyRouteComponent(() => import('./ci-page.tsx'), 'CiPage'),
  validateSearch: parseCiSearch,
  staticData: { crumb: 'CI' },
});

/** The pages about the runs of an organization. */
export const ciRoutes = [ci] as const;
