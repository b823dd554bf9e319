import type { QueueBoard } from '../shared/jobs/queue-board.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { Metrics } from '../shared/platform/telemetry/metrics.ts';
import type { ProcessHealth } from '../shared/platform/telemetry/status-server.ts';
import type { Quotas } from '../shared/quotas/quota-service.ts';
import type { AuditService } from './audit/audit-service.ts';
import type { CredentialGuard } from './credentials/credential-guard.ts';
import type { LeaseAccess } from './credentials/lease-access.ts';
import type { EventService } from './events/event-service.ts';
import type { MemberService } from './members/member-service.ts';
import type { BodyParts } from './plugins/body.ts';
import type { PolicyGroupService } from './policies/policy-group-service.ts';
import type { PolicyPackService } from './policies/policy-pack-service.ts';
import type { SecretService } from './secrets/secret-service.ts';
import type { StackRenaming } from './stacks/stack-renaming.ts';
import type { StackService } from './stacks/stack-service.ts';
import type { StateService } from './stacks/state-service.ts';
import type { TeamService } from './teams/team-service.ts';
import type { TokenService } from './tokens/token-service.ts';
import type { HistoryService } from './updates/history-service.ts';
import type { UpdateBeginning } from './updates/update-beginning.ts';
import type { UpdateService } from './updates/update-service.ts';
import type { UserService } from './users/user-service.ts';
import type { SubmitWrite } from './writes/submit-write.ts';

/**
 * Everything that routes and plugins receive: services, but no access to repositories. A boundary rule keeps this file, routes and
 * plugins from importing one.
 */
export interface ApiServices extends BodyParts {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly health: ProcessHealth;
  readonly quotas: Quotas;
  /** Checks API tokens and leases. */
  readonly credentials: CredentialGuard;
  readonly leases: LeaseAccess;
  readonly users: UserService;
  readonly stacks: StackService;
  readonly renaming: StackRenaming;
  readonly states: StateService;
  readonly updates: UpdateService;
  readonly beginning: UpdateBeginning;
  readonly history: HistoryService;
  readonly events: EventService;
  readonly secrets: SecretService;
  readonly policyPacks: PolicyPackService;
  readonly policyGroups: PolicyGroupService;
  readonly members: MemberService;
  readonly teams: TeamService;
  readonly tokens: TokenService;
  readonly audit: AuditService;
  readonly submitWrite: SubmitWrite;
  /** Null unless jobs go through Redis. */
  readonly board: QueueBoard | null;
}
