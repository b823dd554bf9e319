import { liveRouter } from './live.router.ts';
import { meRouter } from './me.router.ts';
import { organizationRouter } from './organization.router.ts';
import { queueRouter } from './queue.router.ts';
import { referencesRouter } from './references.router.ts';
import { resourcesRouter } from './resources.router.ts';
import { searchRouter } from './search.router.ts';
import { secretsRouter } from './secrets.router.ts';
import { stacksRouter } from './stacks.router.ts';
import { router } from './trpc.ts';
import { updatesRouter } from './updates.router.ts';
import { versionsRouter } from './versions.router.ts';

/** All procedures of the dashboard. */
export const appRouter = router({
  live: liveRouter,
  me: meRouter,
  stacks: stacksRouter,
  updates: updatesRouter,
  resources: resourcesRouter,
  search: searchRouter,
  references: referencesRouter,
  secrets: secretsRouter,
  versions: versionsRouter,
  queue: queueRouter,
  organization: organizationRouter,
});

/** What the dashboard knows of the server: types only. */
export type AppRouter = typeof appRouter;
