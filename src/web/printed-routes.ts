import { createRoute, redirect } from '@tanstack/react-router';
import { rootRoute } from './platform/app/root-route.tsx';

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

/** Other paths that the CLI prints: they lead to the pages that have what they promise. */
export const printedRoutes = [stackSettings, policyPack, ownTokens] as const;
