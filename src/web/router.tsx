import { createRouter } from '@tanstack/react-router';
import { operatorRoutes } from './operator/routes.tsx';
import { organizationRoutes } from './organization-routes.tsx';
import { rootRoute } from './platform/app/root-route.tsx';
import { parseSearch, stringifySearch } from './platform/app/search-params.ts';
import { printedRoutes } from './printed-routes.ts';
import { searchRoutes } from './search/routes.tsx';
import { Shell } from './shell.tsx';
import { stackRoutes } from './stacks/routes.tsx';
import { ciRoutes } from './statistics/routes.tsx';

rootRoute.update({ component: Shell });

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...stackRoutes,
    ...printedRoutes,
    ...searchRoutes,
    // Other pages are under `~`, which is part of no name.
    organizationRoutes,
    ...ciRoutes,
    operatorRoutes,
  ]),
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface StaticDataRouteOption {
    /** What the breadcrumb calls the page. */
    readonly crumb?: string;
  }
}
