import { createRootRoute } from '@tanstack/react-router';
import { ErrorPage, NotFoundPage } from './problem-pages.tsx';
import { Shell } from './shell.tsx';

// Pages read their path and search with `getRouteApi(id)`: they do not import routes, which import them.

/** What all routes are under. */
export const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NotFoundPage,
  errorComponent: ErrorPage,
});
