import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../ui/chunks.tsx';
import { rootRoute } from './root-route.tsx';

/** The parent route of an organization's pages. */
export const organizationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~',
  component: lazyPage(() => import('./organization-layout.tsx'), 'OrganizationLayout'),
});
