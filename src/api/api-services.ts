import type { QueueBoard } from '../shared/jobs/queue-board.ts';
import type { Config } from '../shared/platform/config/config.ts';
import type { Metrics } from '../shared/platform/telemetry/metrics.ts';
import type { ProcessHealth } from '../shared/platform/telemetry/status-server.ts';
import type { Quotas } from '../shared/quotas/quota-service.ts';
import type { AccessPolicyService } from './access/access-policy-service.ts';
import type { AuditService } from './audit/audit-service.ts';
import type { CredentialGuard } from './credentials/credential-guard.ts';
import type { LeaseAccess } from './credentials/lease-access.ts';
import type { DriftService } from './drift/drift-service.ts';
import type { EventService } from './events/event-service.ts';
import type { ExchangeService } from './exchange/exchange-service.ts';
import type { GrantService } from './grants/grant-service.ts';
import type { StackAccessService } from './grants/stack-access-service.ts';
import type { ApprovalService } from './guards/approval-service.ts';
import type { GuardService } from './guards/guard-service.ts';
import type { IssuerService } from './issuers/issuer-service.ts';
import type { LockQueue } from './lock-queue/lock-queue.ts';
import type { QueuedCreation } from './lock-queue/queued-creation.ts';
import type { MemberService } from './members/member-service.ts';
import type { BodyParts } from './plugins/body.ts';
import type { PolicyGroupService } from './policies/policy-group-service.ts';
import type { PolicyPackService } from './policies/policy-pack-service.ts';
import type { RequestRates } from './rates/request-rates.ts';
import type { RoleService } from './roles/role-service.ts';
import type { ScimGroupService } from './scim/scim-group-service.ts';
import type { ScimUserService } from './scim/scim-user-service.ts';
import type { SecretService } from './secrets/secret-service.ts';
import type { CliLoginService } from './sign-in/cli-login-service.ts';
import type { PasskeyService } from './sign-in/passkey-service.ts';
import type { PasswordService } from './sign-in/password-service.ts';
import type { ProviderService } from './sign-in/provider-service.ts';
import type { SessionService } from './sign-in/session-service.ts';
import type { StackRenaming } from './stacks/stack-renaming.ts';
import type { StackService } from './stacks/stack-service.ts';
import type { StateService } from './stacks/state-service.ts';
import type { TeamService } from './teams/team-service.ts';
import type { TokenService } from './tokens/token-service.ts';
import type { UpdateRuleService } from './update-rules/update-rule-service.ts';
import type { HistoryService } from './updates/history-service.ts';
import type { UpdateBeginning } from './updates/update-beginning.ts';
import type { UpdateService } from './updates/update-service.ts';
import type { UserService } from './users/user-service.ts';
import type { WebhookService } from './webhooks/webhook-service.ts';
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
  readonly rates: RequestRates;
  /** Checks API tokens and leases. */
  readonly credentials: CredentialGuard;
  readonly leases: LeaseAccess;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly passwords: PasswordService;
  readonly provider: ProviderService;
  readonly passkeys: PasskeyService;
  readonly cliLogin: CliLoginService;
  readonly stacks: StackService;
  readonly renaming: StackRenaming;
  readonly states: StateService;
  readonly updates: UpdateService;
  readonly creations: QueuedCreation;
  readonly lockQueue: LockQueue;
  readonly beginning: UpdateBeginning;
  readonly approvals: ApprovalService;
  readonly guards: GuardService;
  readonly history: HistoryService;
  readonly events: EventService;
  readonly secrets: SecretService;
  readonly policyPacks: PolicyPackService;
  readonly policyGroups: PolicyGroupService;
  readonly members: MemberService;
  readonly accessPolicy: AccessPolicyService;
  readonly updateRules: UpdateRuleService;
  readonly teams: TeamService;
  readonly roles: RoleService;
  readonly grants: GrantService;
  readonly stackAccess: StackAccessService;
  readonly tokens: TokenService;
  readonly scimUsers: ScimUserService;
  readonly scimGroups: ScimGroupService;
  readonly issuers: IssuerService;
  readonly webhooks: WebhookService;
  readonly drift: DriftService;
  readonly exchange: ExchangeService;
  readonly audit: AuditService;
  readonly submitWrite: SubmitWrite;
  /** Null unless jobs go through Redis. */
  readonly board: QueueBoard | null;
}
