import { organizationRoute } from './organization-route.tsx';

/** The pages of organizations. */
export const organizationRoutes = organizationRoute.addChildren([]);
