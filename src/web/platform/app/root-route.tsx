import { createRootRoute } from '@tanstack/react-router';
import { ErrorPage, NotFoundPage } from './problem-pages.tsx';

// Pages read their path and search with `getRouteApi(id)`: they do not import routes, which import them.

/** The router gives it the frame of the pages. */
export const rootRoute = createRootRoute({ notFoundComponent: NotFoundPage, errorComponent: ErrorPage });
