import { createRoute } from '@tanstack/react-router';
import { lazyPage } from '../ui/chunks.tsx';
import { rootRoute } from './root-route.tsx';

export const organizationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~',
  component: lazyPage(() => import('./organization-layout.tsx'), 'OrganizationLayout'),
});
