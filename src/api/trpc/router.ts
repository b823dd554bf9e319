import { liveRouter } from './live.router.ts';
import { meRouter } from './me.router.ts';
import { stacksRouter } from './stacks.router.ts';
import { router } from './trpc.ts';

/** All procedures of the dashboard. */
export const appRouter = router({
  live: liveRouter,
  me: meRouter,
  stacks: stacksRouter,
});

/** What the dashboard knows of the server: types only. */
export type AppRouter = typeof appRouter;
