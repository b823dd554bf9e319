import { createRoute } from '@tanstack/react-router';
import { organizationRoute } from './platform/app/organization-route.tsx';
import {
  parseApprovalSearch,
  parsePolicySearch,
  parseRuleSearch,
  parseWebhookSearch,
} from './platform/app/setting-search.ts';
import { pageTexts } from './platform/texts.tsx';
import { lazyPage } from './platform/ui/chunks.tsx';

const rules = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/rules',
  component: lazyPage(() => import('./updates/rules/rules-page.tsx'), 'RulesPage'),
  validateSearch: parseRuleSearch,
  staticData: { crumb: pageTexts.rules },
});

const approvals = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/approvals',
  component: lazyPage(() => import('./updates/approvals/approvals-page.tsx'), 'ApprovalsPage'),
  validateSearch: parseApprovalSearch,
  staticData: { crumb: pageTexts.approvals },
});

const policies = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/policies',
  component: lazyPage(() => import('./policies/policies-page.tsx'), 'PoliciesPage'),
  validateSearch: parsePolicySearch,
  staticData: { crumb: pageTexts.policies },
});

const webhooks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks',
  component: lazyPage(() => import('./webhooks/webhooks-page.tsx'), 'WebhooksPage'),
  staticData: { crumb: pageTexts.webhooks },
});

const webhook = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/webhooks/$webhook',
  component: lazyPage(() => import('./webhooks/webhook-page.tsx'), 'WebhookPage'),
  validateSearch: parseWebhookSearch,
  staticData: { crumb: pageTexts.webhook },
});

const limits = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/limits',
  component: lazyPage(() => import('./access/quotas-page.tsx'), 'LimitsPage'),
  staticData: { crumb: pageTexts.limits },
});

const deletedStacks = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/deleted-stacks',
  component: lazyPage(() => import('./stacks/deleted/deleted-stacks-page.tsx'), 'DeletedStacksPage'),
  staticData: { crumb: pageTexts.deletedStacks },
});

const imports = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/imports',
  component: lazyPage(() => import('./stacks/imports/imports-page.tsx'), 'ImportsPage'),
  staticData: { crumb: pageTexts.imports },
});

const importRun = createRoute({
  getParentRoute: () => organizationRoute,
  path: '/imports/$run',
  component: lazyPage(() => import('./stacks/imports/import-page.tsx'), 'ImportPage'),
  staticData: { crumb: pageTexts.import },
});

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
