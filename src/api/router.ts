import { accessRouter } from './access/access.trpc.ts';
import { grantsRouter } from './access/grants.trpc.ts';
import { mergeRouters, router } from './access/procedures/trpc.ts';
import { quotasRouter } from './access/quotas.trpc.ts';
import { rolesRouter } from './access/roles.trpc.ts';
import { activityRouter } from './audit/activity.trpc.ts';
import { auditRouter } from './audit/audit.trpc.ts';
import { embedsRouter } from './embeds/embeds.trpc.ts';
import { eventsRouter } from './events/events.trpc.ts';
import { liveRouter } from './events/live/live.trpc.ts';
import { issuersRouter } from './identity/issuers.trpc.ts';
import { meRouter } from './identity/me.trpc.ts';
import { membersRouter } from './identity/members.trpc.ts';
import { setupRouter } from './identity/setup.trpc.ts';
import { teamsRouter } from './identity/teams.trpc.ts';
import { tokensRouter } from './identity/tokens.trpc.ts';
import { operatorRouter } from './operator/operator.trpc.ts';
import { policiesRouter } from './policies/policies.trpc.ts';
import { referencesRouter } from './search/references.trpc.ts';
import { searchRouter } from './search/search.trpc.ts';
import { secretsRouter } from './secrets/secrets.trpc.ts';
import { deletedStacksRouter } from './stacks/deleted-stacks.trpc.ts';
import { importsRouter } from './stacks/imports.trpc.ts';
import { stacksRouter } from './stacks/stacks.trpc.ts';
import { savedViewsRouter } from './stacks/views/saved-views.trpc.ts';
import { resourcesRouter } from './state/resources.trpc.ts';
import { retentionRouter } from './state/retention.trpc.ts';
import { versionsRouter } from './state/versions.trpc.ts';
import { ciRouter } from './statistics/ci.trpc.ts';
import { statisticsRouter } from './statistics/statistics.trpc.ts';
import { approvalsRouter } from './updates/approvals/approvals.trpc.ts';
import { queueRouter } from './updates/queue/queue.trpc.ts';
import { rulesRouter } from './updates/rules/update-rules.trpc.ts';
import { updatesRouter } from './updates/updates.trpc.ts';
import { webhooksRouter } from './webhooks/webhooks.trpc.ts';

export const appRouter = router({
  live: liveRouter,
  me: meRouter,
  setup: setupRouter,
  stacks: stacksRouter,
  deletedStacks: deletedStacksRouter,
  imports: importsRouter,
  views: savedViewsRouter,
  embeds: embedsRouter,
  updates: mergeRouters(updatesRouter, eventsRouter, statisticsRouter),
  resources: resourcesRouter,
  search: searchRouter,
  references: referencesRouter,
  secrets: secretsRouter,
  versions: versionsRouter,
  retention: retentionRouter,
  queue: queueRouter,
  rules: rulesRouter,
  approvals: approvalsRouter,
  policies: policiesRouter,
  webhooks: webhooksRouter,
  limits: quotasRouter,
  members: membersRouter,
  teams: teamsRouter,
  roles: rolesRouter,
  grants: grantsRouter,
  access: accessRouter,
  tokens: tokensRouter,
  issuers: issuersRouter,
  audit: auditRouter,
  activity: activityRouter,
  ci: ciRouter,
  operator: operatorRouter,
});

/** Types only. */
export type AppRouter = typeof appRouter;
