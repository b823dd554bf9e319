import { createRoute } from '@tanstack/react-router';
import { parseAuditSearch, parseMemberSearch, parseTextSearch, parseTokenSearch } from './platform/app/list-search.ts';
import { organizationRoute } from './platform/app/organization-route.tsx';
import { pageTexts } from './platform/texts.tsx';
import { lazyPage } from './platform/ui/chunks.tsx';
import { settingRoutes } from './setting-routes.tsx';

const members = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/members',
  component: lazyPage(() => import('./identity/people/members-page.tsx'), 'MembersPage'),
  validateSearch: parseMemberSearch,
  staticData: { crumb: pageTexts.members },
});

const teams = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/teams',
  component: lazyPage(() => import('./identity/people/teams-page.tsx'), 'TeamsPage'),
  validateSearch: parseTextSearch,
  staticData: { crumb: pageTexts.teams },
});

const team = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/teams/$team',
  component: lazyPage(() => import('./identity/people/team-page.tsx'), 'TeamPage'),
  staticData: { crumb: pageTexts.team },
});

const roles = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/roles',
  component: lazyPage(() => import('./access/roles-page.tsx'), 'RolesPage'),
  staticData: { crumb: pageTexts.roles },
});

const tokens = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/tokens',
  component: lazyPage(() => import('./identity/tokens/tokens-page.tsx'), 'TokensPage'),
  validateSearch: parseTokenSearch,
  staticData: { crumb: pageTexts.tokens },
});

const trustPolicies = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/trust-policies',
  component: lazyPage(() => import('./identity/trust/trust-policies-page.tsx'), 'TrustPoliciesPage'),
  staticData: { crumb: pageTexts.trustPolicies },
});

const access = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/access',
  component: lazyPage(() => import('./access/access-page.tsx'), 'AccessPage'),
  staticData: { crumb: pageTexts.access },
});

const audit = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/audit',
  component: lazyPage(() => import('./audit/audit-page.tsx'), 'AuditPage'),
  validateSearch: parseAuditSearch,
  staticData: { crumb: pageTexts.audit },
});

export const organizationRoutes = organizationRoute.addChildren([
  members,
  teams,
  team,
  roles,
  tokens,
  trustPolicies,
  access,
  audit,
  ...settingRoutes,
]);
