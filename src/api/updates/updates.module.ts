import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ApprovalQueries } from './approvals/approval-queries.ts';
import { ApprovalService } from './approvals/approval-service.ts';
import { registerApprovalRoutes } from './approvals/approvals.routes.ts';
import { registerCreationRoutes } from './creation.routes.ts';
import { DrainService } from './drain-service.ts';
import { registerHistoryRoutes } from './history.routes.ts';
import { HistoryService } from './history-service.ts';
import { QueueService } from './queue/queue-service.ts';
import { UpdateQueue } from './queue/update-queue.ts';
import { WaitingCreations } from './queue/waiting-creations.ts';
import { RuleQueries } from './rules/rule-queries.ts';
import { UpdateRuleService } from './rules/update-rule-service.ts';
import { registerUpdateRuleRoutes } from './rules/update-rules.routes.ts';
import { UpdateQueries } from './update-queries.ts';
import { UpdateService } from './update-service.ts';
import { registerUpdateRoutes } from './updates.routes.ts';

/** Called once per app. */
export function createUpdateServices(context: ApiContext) {
  const updates = new UpdateService(context);
  const updateQueue = new UpdateQueue(context, (stackId) => updates.reclaim(stackId, { admitsFault: true }));
  context.lifecycle.onClose('work', 'lock queue', () => updateQueue.close());
  const { metrics } = context;
  metrics.gauge(
    'holdfast_update_queue_calls',
    'Calls of this process that wait for a stack.',
    () => updateQueue.waiting,
  );
  metrics.gauge(
    'holdfast_update_queue_oldest_seconds',
    'Longest time that a call of this process has waited for a stack.',
    () => updateQueue.oldestSeconds,
  );
  return {
    updates,
    updateQueries: new UpdateQueries(context),
    waitingCreations: new WaitingCreations(context, updates, updateQueue),
    updateQueue,
    queue: new QueueService(context),
    approvals: new ApprovalService(context),
    approvalQueries: new ApprovalQueries(context),
    changeLimits: new DrainService(context),
    history: new HistoryService(context),
    updateRules: new UpdateRuleService(context),
    ruleQueries: new RuleQueries(context),
  };
}

export function registerUpdateDomain(
  routes: RouteScope,
  services: Parameters<typeof registerUpdateRoutes>[1] &
    Parameters<typeof registerCreationRoutes>[1] &
    Parameters<typeof registerApprovalRoutes>[1] &
    Parameters<typeof registerHistoryRoutes>[1] &
    Parameters<typeof registerUpdateRuleRoutes>[1],
): void {
  registerCreationRoutes(routes, services);
  registerUpdateRoutes(routes, services);
  registerApprovalRoutes(routes, services);
  registerHistoryRoutes(routes, services);
  registerUpdateRuleRoutes(routes, services);
}
