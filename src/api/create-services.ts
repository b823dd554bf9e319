import type { ApiContext } from './api-context.ts';
import type { ApiServices } from './api-services.ts';
import { AuditService } from './audit/audit-service.ts';
import { LeaseAccess } from './credentials/lease-access.ts';
import { EventService } from './events/event-service.ts';
import { MemberService } from './members/member-service.ts';
import { PolicyGroupService } from './policies/policy-group-service.ts';
import { PolicyPackService } from './policies/policy-pack-service.ts';
import { SecretService } from './secrets/secret-service.ts';
import { StackRenaming } from './stacks/stack-renaming.ts';
import { StackService } from './stacks/stack-service.ts';
import { StateService } from './stacks/state-service.ts';
import { TeamService } from './teams/team-service.ts';
import { TokenService } from './tokens/token-service.ts';
import { HistoryService } from './updates/history-service.ts';
import { UpdateBeginning } from './updates/update-beginning.ts';
import { UpdateService } from './updates/update-service.ts';
import { UserService } from './users/user-service.ts';
import { createSubmitWrite } from './writes/submit-write.ts';

/** Creates the services of an API. Called once per app. */
export function createServices(context: ApiContext): ApiServices {
  const { board = null, config, credentials, health, jobServices, metrics, quotas, bodyBuffer } = context;
  const updates = new UpdateService(context);
  const reclaim: UpdateService['reclaim'] = (stackId, options) => updates.reclaim(stackId, options);
  return {
    config,
    metrics,
    health,
    quotas,
    bodyBuffer,
    credentials,
    leases: new LeaseAccess(context),
    users: new UserService(context),
    stacks: new StackService(context, reclaim),
    renaming: new StackRenaming(context, reclaim),
    states: new StateService(context, reclaim),
    updates,
    beginning: new UpdateBeginning(context, updates),
    history: new HistoryService(context),
    events: new EventService(context),
    secrets: new SecretService(context),
    policyPacks: new PolicyPackService(context),
    policyGroups: new PolicyGroupService(context),
    members: new MemberService(context),
    teams: new TeamService(context),
    tokens: new TokenService(context),
    audit: new AuditService(context),
    submitWrite: createSubmitWrite({ ...context, services: jobServices }),
    board,
  };
}
