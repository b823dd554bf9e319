import { organizationRoute } from './organization-route.tsx';
import { settingRoutes } from './setting-routes.tsx';

/** The pages of organizations. */
export const organizationRoutes = organizationRoute.addChildren([...settingRoutes]);
