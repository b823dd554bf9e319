import { approvalsRouter } from './approvals.router.ts';
import { limitsRouter } from './limits.router.ts';
import { liveRouter } from './live.router.ts';
import { meRouter } from './me.router.ts';
import { organizationRouter } from './organization.router.ts';
import { policiesRouter } from './policies.router.ts';
import { queueRouter } from './queue.router.ts';
import { resourcesRouter } from './resources.router.ts';
import { rulesRouter } from './rules.router.ts';
import { stacksRouter } from './stacks.router.ts';
import { router } from './trpc.ts';
import { updatesRouter } from './updates.router.ts';
import { versionsRouter } from './versions.router.ts';
import { webhooksRouter } from './webhooks.router.ts';

/** All procedures of the dashboard. */
export const appRouter = router({
  live: liveRouter,
  me: meRouter,
  stacks: stacksRouter,
  updates: updatesRouter,
  resources: resourcesRouter,
  versions: versionsRouter,
  queue: queueRouter,
  organization: organizationRouter,
  rules: rulesRouter,
  approvals: approvalsRouter,
  policies: policiesRouter,
  webhooks: webhooksRouter,
  limits: limitsRouter,
});

/** What the dashboard knows of the server: types only. */
export type AppRouter = typeof appRouter;
