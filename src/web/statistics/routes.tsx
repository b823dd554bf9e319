import { createRoute } from '@tanstack/react-router';
import { parseCiSearch } from '../platform/app/ci-search.ts';
import { rootRoute } from '../platform/app/root-route.tsx';
import { pageTexts } from '../platform/texts.tsx';
import { lazyPage } from '../platform/ui/chunks.tsx';
import { parseActivitySearch } from './activity/activity-search.ts';

const ci = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/ci',
  component: lazyPage(() => import('./ci-page.tsx'), 'CiPage'),
  validateSearch: parseCiSearch,
  staticData: { crumb: pageTexts.ci },
});

const activity = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/activity',
  component: lazyPage(() => import('./activity/activity-page.tsx'), 'ActivityPage'),
  validateSearch: parseActivitySearch,
  staticData: { crumb: pageTexts.activity },
});

/** The pages about the runs of an organization. */
export const ciRoutes = [ci, activity] as const;
