import { accessRouter } from './access.router.ts';
import { approvalsRouter } from './approvals.router.ts';
import { auditRouter } from './audit.router.ts';
import { ciRouter } from './ci.router.ts';
import { deletedStacksRouter } from './deleted-stacks.router.ts';
import { grantsRouter } from './grants.router.ts';
import { issuersRouter } from './issuers.router.ts';
import { limitsRouter } from './limits.router.ts';
import { liveRouter } from './live.router.ts';
import { meRouter } from './me.router.ts';
import { membersRouter } from './members.router.ts';
import { operatorRouter } from './operator.router.ts';
import { policiesRouter } from './policies.router.ts';
import { queueRouter } from './queue.router.ts';
import { referencesRouter } from './references.router.ts';
import { resourcesRouter } from './resources.router.ts';
import { rolesRouter } from './roles.router.ts';
import { rulesRouter } from './rules.router.ts';
import { searchRouter } from './search.router.ts';
import { secretsRouter } from './secrets.router.ts';
import { stacksRouter } from './stacks.router.ts';
import { teamsRouter } from './teams.router.ts';
import { tokensRouter } from './tokens.router.ts';
import { router } from './trpc.ts';
import { updatesRouter } from './updates.router.ts';
import { versionsRouter } from './versions.router.ts';
import { webhooksRouter } from './webhooks.router.ts';

/** All procedures of the dashboard. */
export const appRouter = router({
  live: liveRouter,
  me: meRouter,
  stacks: stacksRouter,
  deletedStacks: deletedStacksRouter,
  updates: updatesRouter,
  resources: resourcesRouter,
  search: searchRouter,
  references: referencesRouter,
  secrets: secretsRouter,
  versions: versionsRouter,
  queue: queueRouter,
  rules: rulesRouter,
  approvals: approvalsRouter,
  policies: policiesRouter,
  webhooks: webhooksRouter,
  limits: limitsRouter,
  members: membersRouter,
  teams: teamsRouter,
  roles: rolesRouter,
  grants: grantsRouter,
  access: accessRouter,
  tokens: tokensRouter,
  issuers: issuersRouter,
  audit: auditRouter,
  ci: ciRouter,
  operator: operatorRouter,
});

/** What the dashboard knows of the server: types only. */
export type AppRouter = typeof appRouter;
