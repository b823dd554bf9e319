import type { inferRouterInputs, inferRouterOutputs } from '@trpc/server';
import type { AppRouter as ServerRouter } from '../../../api/router.ts';

// The pages know only the types of the server's procedures.

export type AppRouter = ServerRouter;

export interface StackRef {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
}

type Outputs = inferRouterOutputs<AppRouter>;
type Inputs = inferRouterInputs<AppRouter>;

export type Me = Outputs['me']['get'];
export type StackItem = Outputs['stacks']['list']['items'][number];
export type StackFilter = Inputs['stacks']['list'];
export type Attention = Outputs['stacks']['attention'];
export type StackDetails = Outputs['stacks']['get'];
export type UpdateItem = Outputs['updates']['list']['items'][number];
export type UpdateDetails = Outputs['updates']['get'];
export type UpdateStatistics = Outputs['updates']['statistics'];
export type UpdateTrend = Outputs['updates']['trend']['items'][number];
export type CiStatistics = Outputs['ci']['statistics'];
export type CiRefusal = Outputs['ci']['refusals']['items'][number];
export type CiDelivery = Outputs['ci']['delivery'];
export type CiDrift = Outputs['ci']['drift']['items'][number];
export type OperatorHealth = Outputs['operator']['health'];
export type OperatorQueues = Outputs['operator']['queues'];
export type OperatorLock = Outputs['operator']['locks']['items'][number];
export type OperatorSlow = Outputs['operator']['slow']['items'][number];
export type OperatorStorage = Outputs['operator']['storage'];
export type OperatorOrganization = Outputs['operator']['organizations']['items'][number];
export type OperatorBackup = Outputs['operator']['backups']['backups'][number];
export type OperatorTasks = Outputs['operator']['maintenance'];
export type SecretLocation = Inputs['secrets']['reveal']['location'];
export type FoundResource = Outputs['search']['list']['items'][number];
export type SearchCounts = Outputs['search']['count'];
export type SearchField = Inputs['search']['count']['by'];
export type ReferenceGraph = Outputs['references']['graph'];
export type ReferenceNode = ReferenceGraph['nodes'][number];
export type QueueItem = Outputs['queue']['list']['items'][number];
export type ResourcePage = Outputs['resources']['list'];
export type StackResources = Outputs['resources']['graph'];
export type ResourceItem = Outputs['resources']['list']['items'][number];
export type LegalHold = NonNullable<Outputs['retention']['findHold']>;
export type VersionItem = Outputs['versions']['list']['items'][number];
export type VersionDifference = Outputs['versions']['diff']['items'][number];
export type InvitationItem = Outputs['members']['invitations']['items'][number];
export type MemberItem = Outputs['members']['list']['items'][number];
export type TeamItem = Outputs['teams']['list']['items'][number];
export type TeamDetails = Outputs['teams']['get'];
export type TeamMemberItem = Outputs['teams']['members']['items'][number];
export type RoleItem = Outputs['roles']['list']['items'][number];
export type GrantItem = Outputs['grants']['list']['items'][number];
export type TokenItem = Outputs['tokens']['list']['items'][number];
export type IssuerItem = Outputs['issuers']['list']['items'][number];
export type IssuerDetails = Outputs['issuers']['get'];
export type ActivityItem = Outputs['activity']['list']['items'][number];
export type AuditItem = Outputs['audit']['list']['items'][number];
export type Declaration = NonNullable<Outputs['access']['declaration']['declaration']>;
export type AccessPolicy = Outputs['access']['policy'];
export type AccessHolder = Outputs['access']['list']['items'][number];

export type Rule = Outputs['rules']['list']['items'][number];
export type RulePreview = Outputs['rules']['preview'];
export type Approval = Outputs['approvals']['list']['items'][number];
export type Webhook = Outputs['webhooks']['list']['items'][number];
export type Delivery = Outputs['webhooks']['deliveries']['items'][number];
export type PolicyGroup = Outputs['policies']['groups']['items'][number];
export type GroupChange = Omit<Inputs['policies']['changeGroup'], 'organization' | 'group'>;
export type PolicyPack = Outputs['policies']['packs']['items'][number];
export type SetupStep = Outputs['setup']['list']['items'][number]['step'];
export type SavedView = Outputs['views']['list']['items'][number];
/** A view with its organization. */
export type OwnedView = Outputs['views']['everywhere']['items'][number];
export type ViewedPage = Inputs['views']['create']['viewed'];
export type EmbedItem = Outputs['embeds']['list']['items'][number];
export type DeletedStack = Outputs['deletedStacks']['list']['items'][number];
export type ImportRun = Outputs['imports']['list']['items'][number];
export type ImportedStack = Outputs['imports']['stacks']['items'][number];
export type Limit = Outputs['limits']['get']['items'][number];
export type StackDifference = Outputs['versions']['diffStacks']['items'][number];
export type PendingSteps = Outputs['stacks']['pending'];
export type PendingStep = PendingSteps['items'][number];
export type Blame = Outputs['resources']['blame'];
