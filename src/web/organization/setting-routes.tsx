import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { organizationRoute } from './organization-route.tsx';
import { parseApprovalSearch, parsePolicySearch, parseRuleSearch, parseWebhookSearch } from './setting-search.ts';

const rules = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/rules',
  component: lazyRouteComponent(() => import('./rules-page.tsx'), 'RulesPage'),
  validateSearch: parseRuleSearch,
  staticData: { crumb: 'Rules' },
});

const approvals = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/approvals',
  component: lazyRouteComponent(() => import('./approvals-page.tsx'), 'ApprovalsPage'),
  validateSearch: parseApprovalSearch,
  staticData: { crumb: 'Approvals' },
});

const policies = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/policies',
  component: lazyRouteComponent(() => import('./policies-page.tsx'), 'PoliciesPage'),
  validateSearch: parsePolicySearch,
  staticData: { crumb: 'Policies' },
});

const webhooks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks',
  component: lazyRouteComponent(() => import('./webhooks-page.tsx'), 'WebhooksPage'),
  staticData: { crumb: 'Webhooks' },
});

const webhook = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks/$webhook',
  component: lazyRouteComponent(() => import('./webhook-page.tsx'), 'WebhookPage'),
  validateSearch: parseWebhookSearch,
  staticData: { crumb: 'Webhook' },
});

const limits = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/limits',
  component: lazyRouteComponent(() => import('./limits-page.tsx'), 'LimitsPage'),
  staticData: { crumb: 'Limits' },
});

const deletedStacks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/deleted-stacks',
  component: lazyRouteComponent(() => import('./deleted-stacks-page.tsx'), 'DeletedStacksPage'),
  staticData: { crumb: 'Deleted stacks' },
});

/** Pages of what an organization has set. */
export const settingRoutes = [rules, approvals, policies, webhooks, webhook, limits, deletedStacks] as const;
