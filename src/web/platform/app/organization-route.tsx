import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { rootRoute } from './root-route.tsx';

/** What the pages of an organization are under. */
export const organizationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~',
  component: lazyRouteComponent(() => import('./organization-layout.tsx'), 'OrganizationLayout'),
});
