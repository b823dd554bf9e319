import { AccessPolicyService } from './access/access-policy-service.ts';
import type { ApiContext } from './api-context.ts';
import type { ApiServices } from './api-services.ts';
import { AuditService } from './audit/audit-service.ts';
import { CiBoard } from './statistics/ci-board.ts';
import { LeaseAccess } from './identity/credentials/lease-access.ts';
import { DriftService } from './drift/drift-service.ts';
import { EventService } from './events/event-service.ts';
import { ExchangeService } from './identity/exchange/exchange-service.ts';
import { FigureService } from './statistics/figure-service.ts';
import { GrantService } from './access/grant-service.ts';
import { StackAccessService } from './access/stack-access-service.ts';
import { ApprovalBoard } from './updates/approvals/approval-board.ts';
import { ApprovalService } from './updates/approvals/approval-service.ts';
import { GuardService } from './updates/approvals/guard-service.ts';
import { IssuerService } from './identity/issuer-service.ts';
import { LimitBoard } from './access/limit-board.ts';
import { LiveService } from './events/live/live-service.ts';
import { LineService } from './updates/queue/line-service.ts';
import { LockQueue } from './updates/queue/lock-queue.ts';
import { QueuedCreation } from './updates/queue/queued-creation.ts';
import { MemberService } from './identity/member-service.ts';
import { PeopleBoard } from './identity/people-board.ts';
import { OperatorBoard } from './operator/operator-board.ts';
import { PolicyBoard } from './policies/policy-board.ts';
import { PolicyGroupService } from './policies/policy-group-service.ts';
import { PolicyPackService } from './policies/policy-pack-service.ts';
import { OrganizationRates } from './platform/rates/organization-rates.ts';
import { ResourceService } from './state/resource-service.ts';
import { StackDiff } from './state/stack-diff.ts';
import { StateView } from './state/state-view.ts';
import { VersionService } from './state/version-service.ts';
import { RoleService } from './access/role-service.ts';
import { ScimGroupService } from './identity/scim/scim-group-service.ts';
import { ScimUserService } from './identity/scim/scim-user-service.ts';
import { ReferenceService } from './search/reference-service.ts';
import { SearchService } from './search/search-service.ts';
import { RevealService } from './secrets/reveal-service.ts';
import { SecretService } from './secrets/secret-service.ts';
import { CliLoginService } from './identity/sign-in/cli-login-service.ts';
import { PasskeyService } from './identity/sign-in/passkey-service.ts';
import { PasswordService } from './identity/sign-in/password-service.ts';
import { ProviderService } from './identity/sign-in/provider-service.ts';
import { SessionService } from './identity/sign-in/session-service.ts';
import { SignInLimits } from './identity/sign-in/sign-in-limits.ts';
import { DeletedStacks } from './stacks/deleted-stacks.ts';
import { StackBoard } from './stacks/stack-board.ts';
import { StackRenaming } from './stacks/stack-renaming.ts';
import { StackService } from './stacks/stack-service.ts';
import { StateChanges } from './state/state-changes.ts';
import { StateService } from './state/state-service.ts';
import { TeamService } from './identity/team-service.ts';
import { TokenService } from './identity/token-service.ts';
import { RuleBoard } from './updates/rules/rule-board.ts';
import { UpdateRuleService } from './updates/rules/update-rule-service.ts';
import { HistoryService } from './updates/history-service.ts';
import { UpdateBeginning } from './updates/update-beginning.ts';
import { UpdateBoard } from './updates/update-board.ts';
import { UpdateService } from './updates/update-service.ts';
import { UserService } from './identity/user-service.ts';
import { WebhookService } from './webhooks/webhook-service.ts';
import { createSubmitWrite } from './state/writes/submit-write.ts';

/** Creates the services of an API. Called once per app. */
export function createServices(context: ApiContext): ApiServices {
  const { board = null, config, credentials, health, jobServices, metrics, quotas, bodyBuffer, rates } = context;
  const sessions = new SessionService(context);
  const updates = new UpdateService(context);
  const resources = new ResourceService(context);
  const secrets = new SecretService(context);
  const reclaim: UpdateService['reclaim'] = (stackId, options) => updates.reclaim(stackId, options);
  const lockQueue = new LockQueue(context, (stackId) => updates.reclaim(stackId, { admitsFault: true }));
  context.lifecycle.onClose('work', 'lock queue', () => lockQueue.close());
  metrics.gauge('holdfast_lock_queue_calls', 'Calls of this process that wait for a stack.', () => lockQueue.waiting);
  metrics.gauge(
    'holdfast_lock_queue_oldest_seconds',
    'Longest time that a call of this process has waited for a stack.',
    () => lockQueue.oldestSeconds,
  );
  return {
    config,
    metrics,
    health,
    quotas,
    bodyBuffer,
    rates,
    organizationRates: new OrganizationRates(context),
    credentials,
    leases: new LeaseAccess(context),
    users: new UserService(context),
    sessions,
    passwords: new PasswordService(context.db, sessions, new SignInLimits(context.db)),
    provider: new ProviderService(context, sessions),
    passkeys: new PasskeyService(context, sessions),
    cliLogin: new CliLoginService(context.db, sessions),
    stacks: new StackService(context, reclaim),
    stackBoard: new StackBoard(context),
    deletedStacks: new DeletedStacks(context),
    renaming: new StackRenaming(context, reclaim),
    scans: context.scans,
    states: new StateService(context, reclaim),
    stateChanges: new StateChanges(context, reclaim),
    updates,
    updateBoard: new UpdateBoard(context),
    resources,
    search: new SearchService(context),
    versions: new VersionService(context),
    stackDiff: new StackDiff(context),
    stateView: new StateView(context),
    creations: new QueuedCreation(context, updates, lockQueue),
    lockQueue,
    line: new LineService(context),
    ciBoard: new CiBoard(context),
    operatorBoard: new OperatorBoard(context),
    live: new LiveService(context),
    beginning: new UpdateBeginning(context, updates),
    approvals: new ApprovalService(context),
    approvalBoard: new ApprovalBoard(context),
    guards: new GuardService(context),
    history: new HistoryService(context),
    events: new EventService(context),
    secrets,
    reveal: new RevealService(context, { resources, secrets }),
    references: new ReferenceService(context),
    policyPacks: new PolicyPackService(context),
    policyGroups: new PolicyGroupService(context),
    policyBoard: new PolicyBoard(context),
    limits: new LimitBoard(context),
    members: new MemberService(context),
    peopleBoard: new PeopleBoard(context),
    accessPolicy: new AccessPolicyService(context),
    updateRules: new UpdateRuleService(context),
    ruleBoard: new RuleBoard(context),
    teams: new TeamService(context),
    roles: new RoleService(context),
    grants: new GrantService(context),
    stackAccess: new StackAccessService(context),
    tokens: new TokenService(context),
    scimUsers: new ScimUserService(context),
    scimGroups: new ScimGroupService(context),
    issuers: new IssuerService(context),
    exchange: new ExchangeService(context),
    webhooks: new WebhookService(context),
    drift: new DriftService(context),
    figures: new FigureService(context),
    audit: new AuditService(context),
    submitWrite: createSubmitWrite({ ...context, services: jobServices }),
    board,
  };
}
