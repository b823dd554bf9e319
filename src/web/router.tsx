import { createRoute, createRouter, redirect } from '@tanstack/react-router';
import { operatorRoutes } from './operator/routes.tsx';
import { organizationRoutes } from './organization-routes.tsx';
import { ErrorPage } from './platform/app/problem-pages.tsx';
import { rootRoute } from './platform/app/root-route.tsx';
import { parseSearch, stringifySearch } from './platform/app/search-params.ts';
import { pageTexts } from './platform/texts.tsx';
import { lazyPage } from './platform/ui/chunks.tsx';
import { searchRoutes } from './search/routes.tsx';
import { Shell } from './shell.tsx';
import { stackRoutes } from './stacks/routes.tsx';
import { ciRoutes } from './statistics/routes.tsx';

const stackSettings = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/$project/$stack/settings/options',
  beforeLoad: ({ params }) => {
    throw redirect({ to: '/$organization/$project/$stack', params, replace: true });
  },
});

const policyPack = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/insights/policypacks/$pack/$version',
  beforeLoad: ({ params: { organization } }) => {
    throw redirect({ to: '/$organization/~/policies', params: { organization }, replace: true });
  },
});

const ownTokens = createRoute({
  getParentRoute: () => rootRoute,
  path: '/user/settings/tokens',
  beforeLoad: () => {
    throw redirect({ href: '/account', reloadDocument: true });
  },
});

const about = createRoute({
  getParentRoute: () => rootRoute,
  path: '/~/about',
  component: lazyPage(() => import('./platform/app/about-page.tsx'), 'AboutPage'),
  staticData: { crumb: pageTexts.about },
});

/** They redirect to the matching pages. */
const printedRoutes = [stackSettings, policyPack, ownTokens] as const;

rootRoute.update({ component: Shell });

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    ...stackRoutes,
    ...printedRoutes,
    ...searchRoutes,
    // Other pages are under `~`, which no name may contain.
    organizationRoutes,
    ...ciRoutes,
    about,
    operatorRoutes,
  ]),
  parseSearch,
  stringifySearch,
  // A page keeps nothing of the former stack or organization: no revealed secret, no draft, no rows.
  defaultRemountDeps: ({ params }) => params,
  // A page that throws leaves the frame and its navigation in place.
  defaultErrorComponent: ErrorPage,
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface StaticDataRouteOption {
    /** The label of the page in the breadcrumb. */
    readonly crumb?: string;
  }
}
