import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from './root-route.tsx';

/** The parent route of an organization's pages. */
export const organizationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~',
  component: lazyRouteComponent(() => import('./organization-layout.tsx'), 'OrganizationLayout'),
});
