import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { organizationRoute } from './platform/app/organization-route.tsx';
import {
  parseApprovalSearch,
  parsePolicySearch,
  parseRuleSearch,
  parseWebhookSearch,
} from './platform/app/setting-search.ts';

const rules = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/rules',
  component: lazyRouteComponent(() => import('./updates/rules/rules-page.tsx'), 'RulesPage'),
  validateSearch: parseRuleSearch,
  staticData: { crumb: 'Rules' },
});

const approvals = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/approvals',
  component: lazyRouteComponent(() => import('./updates/approvals/approvals-page.tsx'), 'ApprovalsPage'),
  validateSearch: parseApprovalSearch,
  staticData: { crumb: 'Approvals' },
});

const policies = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/policies',
  component: lazyRouteComponent(() => import('./policies/policies-page.tsx'), 'PoliciesPage'),
  validateSearch: parsePolicySearch,
  staticData: { crumb: 'Policies' },
});

const webhooks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks',
  component: lazyRouteComponent(() => import('./webhooks/webhooks-page.tsx'), 'WebhooksPage'),
  staticData: { crumb: 'Webhooks' },
});

const webhook = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks/$webhook',
  component: lazyRouteComponent(() => import('./webhooks/webhook-page.tsx'), 'WebhookPage'),
  validateSearch: parseWebhookSearch,
  staticData: { crumb: 'Webhook' },
});

const limits = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/limits',
  component: lazyRouteComponent(() => import('./access/limits-page.tsx'), 'LimitsPage'),
  staticData: { crumb: 'Limits' },
});

const deletedStacks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/deleted-stacks',
  component: lazyRouteComponent(() => import('./stacks/deleted/deleted-stacks-page.tsx'), 'DeletedStacksPage'),
  staticData: { crumb: 'Deleted stacks' },
});

const imports = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/imports',
  component: lazyRouteComponent(() => import('./stacks/imports/imports-page.tsx'), 'ImportsPage'),
  staticData: { crumb: 'Imports' },
});

const importRun = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/imports/$run',
  component: lazyRouteComponent(() => import('./stacks/imports/import-page.tsx'), 'ImportPage'),
  staticData: { crumb: 'Import' },
});

/** Pages of an organization's settings. */
export const settingRoutes = [
  rules,
  approvals,
  policies,
  webhooks,
  webhook,
  limits,
  imports,
  importRun,
  deletedStacks,
] as const;
