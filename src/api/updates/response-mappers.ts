import type { FastifyReply } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { GrantRow } from '../../shared/access/grant-repository.ts';
import { formatStackPattern } from '../../shared/access/grants.ts';
import { namesOf } from '../../shared/access/permissions.ts';
import { actorName, describeEvent } from '../../shared/audit/audit-formats.ts';
import type { ListedEventRow } from '../../shared/audit/audit-list-repository.ts';
import type {
  ContractCreateStackResponse,
  ContractCreateUpdateResponse,
  ContractGetUpdateResponse,
  ContractImportResponse,
  ContractListedStack,
  ContractRenewLeaseResponse,
  ContractStackResponse,
  ContractStartUpdateResponse,
} from '../../shared/platform/protocol/contract.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { StackListRow } from '../../shared/stacks/stack-list-repository.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { asHeader, describeFault, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { UpdateInfoRow } from '../../shared/updates/history-repository.ts';
import { isActive, type UpdateStatus } from '../../shared/updates/update-state.ts';
import type { AccessResponse, GrantResponse } from '../access/grants.schemas.ts';
import type { AccessHolder } from '../access/stack-access-service.ts';
import type { AuditLogEvent } from '../audit/audit.schemas.ts';
import type { Dialect } from '../platform/http/request.ts';
import type { ListPolicyGroupsResponse, PolicyGroupResponse, RequiredPolicy } from '../policies/policies.schemas.ts';
import type { PolicyGroupSummary, PolicyGroupView } from '../policies/policy-group-service.ts';
import type { StackView } from '../stacks/stack-view.ts';
import type { CreateStackResponse, ImportResponse, ListedStack, StackResponse } from '../stacks/stacks.schemas.ts';
import type { StartedUpdate } from './update-start.ts';
import type {
  CreateUpdateResponse,
  GetUpdateResponse,
  RenewLeaseResponse,
  StartUpdateResponse,
} from './updates.schemas.ts';

/** The only module that knows how responses differ between the two dialects. */

type Either<Cli extends TSchema, Contract extends TSchema> = Static<Cli> | Static<Contract>;

export function unixSeconds(date: Date | null): number {
  return date ? Math.floor(date.getTime() / 1000) : 0;
}

export function createStackResponse(
  dialect: Dialect,
  stack: StackRow,
): Either<typeof CreateStackResponse, typeof ContractCreateStackResponse> {
  const response = { id: formatStackRef(stack), ...stackMembers(stack) };
  return dialect === 'contract' ? response : { ...response, messages: [] };
}

export function stackResponse(
  dialect: Dialect,
  { stack, operation, faults }: StackView,
): Either<typeof StackResponse, typeof ContractStackResponse> {
  const error = faults.find(({ compactionError }) => compactionError !== null);
  const response = {
    ...stackMembers(stack),
    activeUpdate: stack.activeUpdateId ?? '',
    ...(error ? { journalError: describeFault(error) } : {}),
  };
  if (dialect === 'contract') return response;
  if (!operation) return { id: stack.id, ...response };
  const { kind, author, startedAt } = operation;
  return { id: stack.id, ...response, currentOperation: { kind, author, started: unixSeconds(startedAt) } };
}

/** Makes the CLI print what is missing from the stack's state. */
export function warnOfFaults(reply: FastifyReply, { faults }: StackView): void {
  if (faults.length > 0) void reply.header(warningHeader, asHeader(faults.map(describeFault).join(' ')));
}

/** `lastUpdate` is a time for the CLI, 0 while the update runs, and an object for the contract. Absent if there was no update. */
export function listedStackResponse(
  dialect: Dialect,
  stack: StackListRow,
): Either<typeof ListedStack, typeof ContractListedStack> {
  const response = { ...stackMembers(stack), activeUpdate: stack.activeUpdateId ?? '' };
  const { lastKind: kind, lastStatus: status, resourceCount } = stack;
  const startTime = unixSeconds(stack.lastStartedAt);
  const updated = kind !== null && status !== null;
  if (dialect === 'contract') return { ...response, ...(updated ? { lastUpdate: { kind, status, startTime } } : {}) };
  return {
    id: stack.id,
    ...response,
    ...(updated ? { lastUpdate: stack.activeUpdateId === null ? startTime : 0 } : {}),
    ...(resourceCount === null ? {} : { resourceCount }),
  };
}

function stackMembers(stack: Pick<StackRow, 'organization' | 'project' | 'stack' | 'tags' | 'stackVersion'>) {
  return {
    orgName: stack.organization,
    projectName: stack.project,
    stackName: stack.stack,
    tags: readTags(stack.tags),
    version: stack.stackVersion,
  };
}

/** The CLI reads `updateId`, the contract specifies `updateID`. */
export function importResponse(
  dialect: Dialect,
  updateId: string,
): Either<typeof ImportResponse, typeof ContractImportResponse> {
  return dialect === 'contract' ? { updateID: updateId } : { updateId, updateID: updateId };
}

export function createUpdateResponse(
  dialect: Dialect,
  updateID: string,
  { messages, requiredPolicies }: { readonly messages: readonly string[]; readonly requiredPolicies: RequiredPolicy[] },
): Either<typeof CreateUpdateResponse, typeof ContractCreateUpdateResponse> {
  if (dialect === 'contract') return { updateID };
  return { updateID, requiredPolicies, messages: userMessages(messages) };
}

/** Messages as the CLI shows them. */
export function userMessages(messages: readonly string[]) {
  return messages.map((message) => ({ severity: 'info', message }));
}

/** Groups here are all of one kind; the CLI knows others. */
const groupKind = { entityType: 'stacks', mode: 'preventative' } as const;

export function policyGroupSummary({
  name,
  isDefault,
  stackCount,
  packCount,
}: PolicyGroupSummary): Static<typeof ListPolicyGroupsResponse>['policyGroups'][number] {
  return {
    name,
    isOrgDefault: isDefault,
    ...groupKind,
    numStacks: stackCount,
    numEnabledPolicyPacks: packCount,
  };
}

/**
 * A pack has its version either as a tag or as a number, in the form that the CLI sends it: it compares both when it changes the list
 * (cmd/pulumi/policy/policy_group_edit.go).
 */
export function policyGroupResponse({ group, stacks, packs }: PolicyGroupView): Static<typeof PolicyGroupResponse> {
  return {
    name: group.name,
    isOrgDefault: group.isDefault,
    ...groupKind,
    stacks: stacks.map(({ project, stack }) => ({ name: stack, routingProject: project })),
    appliedPolicyPacks: packs.map(({ name, displayName, versionTag, config }) => ({
      name,
      displayName,
      ...(/^\d{1,9}$/.test(versionTag) ? { version: Number(versionTag) } : { versionTag }),
      config: JSON.parse(config) as object,
    })),
    accounts: [],
  };
}

/** `version` is the version the stack will have for the CLI, and the version the update starts from for the contract. */
export function startResponse(
  dialect: Dialect,
  started: StartedUpdate,
): Either<typeof StartUpdateResponse, typeof ContractStartUpdateResponse> {
  return {
    version: dialect === 'contract' ? started.baseStackVersion : started.stackVersion,
    ...leaseResponse(dialect, started.token, started.expiresAt),
    ...(started.journalVersion > 0 ? { journalVersion: started.journalVersion } : {}),
  };
}

/** The CLI expects seconds and fails on a string; the contract specifies ISO 8601. */
export function leaseResponse(
  dialect: Dialect,
  token: string,
  expiresAt: Date,
): Either<typeof RenewLeaseResponse, typeof ContractRenewLeaseResponse> {
  return dialect === 'contract'
    ? { token, tokenExpiration: expiresAt.toISOString() }
    : { token, tokenExpiration: Math.floor(expiresAt.getTime() / 1000) };
}

/** Maps an update without its message, which may be large. */
export function updateResponse(
  dialect: Dialect,
  update: UpdateInfoRow,
): Omit<Static<typeof GetUpdateResponse>, 'message'> | Omit<Static<typeof ContractGetUpdateResponse>, 'message'> {
  const response = {
    status: update.status,
    kind: update.kind,
    result: historyResult(update.status),
    startTime: unixSeconds(update.startedAt ?? update.createdAt),
    endTime: unixSeconds(update.endedAt),
    version: update.stackVersion ?? update.baseStackVersion,
  };
  if (dialect === 'contract') return response;
  // The CLI polls until the token is null.
  return { updateID: update.id, ...response, events: [], continuationToken: isActive(update.status) ? '0' : null };
}

/** The token of an empty event page. Null ends the CLI's loop; the contract's tokens are always strings. */
export function lastPageToken(dialect: Dialect, page: { isActive: boolean; after: number }): string | null {
  return dialect === 'contract' || page.isActive ? String(page.after) : null;
}

/** In the contract's dialect, histories include all updates. */
export function showsPreviews(dialect: Dialect): boolean {
  return dialect === 'contract';
}

/** The result as histories name it; they have no value for cancelled. */
export function historyResult(status: UpdateStatus): string {
  switch (status) {
    case 'not started':
      return 'not-started';
    case 'running':
      return 'in-progress';
    case 'succeeded':
      return 'succeeded';
    default:
      return 'failed';
  }
}

/** An event of the audit log. */
export function auditLogEvent(event: ListedEventRow): AuditLogEvent {
  const name = actorName(event);
  return {
    timestamp: Math.floor(event.occurredAt.getTime() / 1000),
    event: event.action,
    description: describeEvent(event),
    user: { name, githubLogin: name, avatarUrl: '' },
    sourceIP: event.address,
    ...(event.tokenId === null ? {} : { tokenID: event.tokenId, tokenName: event.tokenName }),
    number: event.number,
    outcome: event.outcome,
    signIn: event.signIn,
    role: event.role,
    grantedBy: event.grantedBy,
    object: event.object,
    ...(event.updateId === null ? {} : { updateID: event.updateId }),
    requestID: event.requestId,
    userAgent: event.userAgent,
    ciRun: event.ciRun === '' ? {} : JSON.parse(event.ciRun),
    details: JSON.parse(event.details),
  };
}

export function grantResponse(grant: GrantRow): Static<typeof GrantResponse> {
  const { projectPattern, roleId, roleName, stackPattern, tagName, tagValue, team, token, tokenId, user } = grant;
  const role = roleId === null ? grant.builtInRole : roleName;
  return {
    id: grant.id,
    effect: grant.effect,
    permissions: namesOf(grant.permissions),
    ...(role === null ? {} : { role: { id: roleId ?? role, name: role } }),
    stacks: formatStackPattern({ project: projectPattern, stack: stackPattern }),
    ...(tagName === null ? {} : { tag: { name: tagName, ...(tagValue === null ? {} : { value: tagValue }) } }),
    ...(user === null ? {} : { user }),
    ...(team === null ? {} : { team }),
    ...(tokenId === null ? {} : { token: { id: tokenId, name: token ?? tokenId } }),
    created: grant.createdAt.toISOString(),
  };
}

export function accessHolder(holder: AccessHolder): Static<typeof AccessResponse>['holders'][number] {
  const { explanation, role, token, user } = holder;
  return {
    ...(user === null ? {} : { user: { githubLogin: user.login, name: user.displayName || user.login } }),
    ...(token === null
      ? {}
      : {
          token: {
            id: token.id,
            name: token.name ?? token.id,
            kind: token.kind,
            ...(token.login === null ? {} : { user: token.login }),
            ...(token.team === null ? {} : { team: token.team }),
          },
        }),
    ...(role === null ? {} : { role }),
    permissions: namesOf(explanation.held),
    decisions: explanation.permissions.map(({ grantIds, isAllowed, permission, reason }) => ({
      permission,
      allowed: isAllowed,
      reason,
      grants: [...grantIds],
    })),
  };
}
