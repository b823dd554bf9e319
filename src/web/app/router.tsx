import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router';
import { parseStackFilter } from '../stacks/stack-filter.ts';
import { parseStackPageSearch } from '../stacks/stack-search.ts';
import { StacksPage } from '../stacks/stacks-page.tsx';
import { parseUpdateSearch } from '../updates/update-search.ts';
import { ErrorPage, NotFoundPage } from './problem-pages.tsx';
import { parseSearch, stringifySearch } from './search-params.ts';
import { Shell } from './shell.tsx';

// Pages read their path and search with `getRouteApi(id)`: they do not import this file, which imports them.

const root = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage, errorComponent: ErrorPage });

const stacks = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: StacksPage,
  validateSearch: parseStackFilter,
});

const organization = createRoute({
  getParentRoute: () => root,
  path: '/$organization',
  component: StacksPage,
  validateSearch: parseStackFilter,
});

const stack = createRoute({
  getParentRoute: () => root,
  path: '/$organization/$project/$stack',
  component: lazyRouteComponent(() => import('../stacks/stack-page.tsx'), 'StackPage'),
  validateSearch: parseStackPageSearch,
});

const update = createRoute({
  getParentRoute: () => root,
  path: '/$organization/$project/$stack/updates/$version',
  component: lazyRouteComponent(() => import('../updates/update-page.tsx'), 'UpdatePage'),
  validateSearch: parseUpdateSearch,
});

const preview = createRoute({
  getParentRoute: () => root,
  path: '/$organization/$project/$stack/previews/$updateId',
  component: lazyRouteComponent(() => import('../updates/update-page.tsx'), 'PreviewPage'),
  validateSearch: parseUpdateSearch,
});

export const router = createRouter({
  routeTree: root.addChildren([stacks, organization, stack, update, preview]),
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
