import { createRoute } from '@tanstack/react-router';
import { rootRoute } from '../platform/app/root-route.tsx';
import { parseStackPageSearch } from '../platform/app/stack-search.ts';
import { pageTexts } from '../platform/texts.tsx';
import { lazyPage } from '../platform/ui/chunks.tsx';
import { parseUpdateSearch } from '../updates/update-search.ts';
import { parseStackFilter } from './stack-filter.ts';
import { StacksPage } from './stacks-page.tsx';

const stacks = createRoute({
  getParentRoute: () => rootRoute,
  path: '/',
  component: StacksPage,
  validateSearch: parseStackFilter,
});

const organization = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization',
  component: StacksPage,
  validateSearch: parseStackFilter,
});

const attentionPage = lazyPage(() => import('./attention/attention-page.tsx'), 'AttentionPage');

const attention = createRoute({
  getParentRoute: () => rootRoute,
  path: '/~/attention',
  component: attentionPage,
  staticData: { crumb: pageTexts.needsAttention },
});

const organizationAttention = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/~/attention',
  component: attentionPage,
  staticData: { crumb: pageTexts.needsAttention },
});

const stack = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/$project/$stack',
  component: lazyPage(() => import('./stack-page.tsx'), 'StackPage'),
  validateSearch: parseStackPageSearch,
});

const update = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/$project/$stack/updates/$version',
  component: lazyPage(() => import('../updates/update-page.tsx'), 'UpdatePage'),
  validateSearch: parseUpdateSearch,
});

const preview = createRoute({
  getParentRoute: () => rootRoute,
  path: '/$organization/$project/$stack/previews/$updateId',
  component: lazyPage(() => import('../updates/update-page.tsx'), 'PreviewPage'),
  validateSearch: parseUpdateSearch,
});

/** The paths are those that the CLI prints. */
export const stackRoutes = [stacks, organization, attention, organizationAttention, stack, update, preview] as const;
