import type { ApiContext } from '../platform/api-context.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { ApprovalBoard } from './approvals/approval-board.ts';
import { ApprovalService } from './approvals/approval-service.ts';
import { GuardService } from './approvals/guard-service.ts';
import { registerGuardRoutes } from './approvals/guards.routes.ts';
import { registerHistoryRoutes } from './history.routes.ts';
import { HistoryService } from './history-service.ts';
import { LineService } from './queue/line-service.ts';
import { LockQueue } from './queue/lock-queue.ts';
import { QueuedCreation } from './queue/queued-creation.ts';
import { RuleBoard } from './rules/rule-board.ts';
import { UpdateRuleService } from './rules/update-rule-service.ts';
import { registerUpdateRuleRoutes } from './rules/update-rules.routes.ts';
import { UpdateBoard } from './update-board.ts';
import { UpdateService } from './update-service.ts';
import { registerUpdateRoutes } from './updates.routes.ts';

/** The services of updates, their queue, rules and approvals. Called once per app. */
export function createUpdateServices(context: ApiContext) {
  const updates = new UpdateService(context);
  const lockQueue = new LockQueue(context, (stackId) => updates.reclaim(stackId, { admitsFault: true }));
  context.lifecycle.onClose('work', 'lock queue', () => lockQueue.close());
  const { metrics } = context;
  metrics.gauge('holdfast_lock_queue_calls', 'Calls of this process that wait for a stack.', () => lockQueue.waiting);
  metrics.gauge(
    'holdfast_lock_queue_oldest_seconds',
    'Longest time that a call of this process has waited for a stack.',
    () => lockQueue.oldestSeconds,
  );
  return {
    updates,
    updateBoard: new UpdateBoard(context),
    creations: new QueuedCreation(context, updates, lockQueue),
    lockQueue,
    line: new LineService(context),
    approvals: new ApprovalService(context),
    approvalBoard: new ApprovalBoard(context),
    guards: new GuardService(context),
    history: new HistoryService(context),
    updateRules: new UpdateRuleService(context),
    ruleBoard: new RuleBoard(context),
  };
}

/** The routes of updates, their queue, rules and approvals. */
export function registerUpdateDomain(
  routes: RouteScope,
  services: Parameters<typeof registerUpdateRoutes>[1] &
    Parameters<typeof registerGuardRoutes>[1] &
    Parameters<typeof registerHistoryRoutes>[1] &
    Parameters<typeof registerUpdateRuleRoutes>[1],
): void {
  registerUpdateRoutes(routes, services);
  registerGuardRoutes(routes, services);
  registerHistoryRoutes(routes, services);
  registerUpdateRuleRoutes(routes, services);
}
