import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { asHeader, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { HistoryView, UpdateInfoRow } from '../../shared/updates/history-repository.ts';
import { isActive, type UpdateStatus } from '../../shared/updates/update-state.ts';
import type { Dialect } from '../platform/http/request.ts';
import { unixSeconds } from '../platform/http/unix-seconds.ts';
import type {
  ContractCreateUpdateResponse,
  ContractGetUpdateResponse,
  ContractRenewLeaseResponse,
  ContractStartUpdateResponse,
} from '../platform/protocol/contract.ts';
import type { Either } from '../platform/protocol/core.ts';
import type { RequiredPolicy } from '../policies/policies.schemas.ts';
import type { StartedUpdate } from './update-start.ts';
import type {
  BeginUpdateResponse,
  CreateUpdateResponse,
  GetUpdateResponse,
  RenewLeaseResponse,
  StartUpdateResponse,
} from './updates.schemas.ts';

// How responses about updates differ between the two dialects.

export function createUpdateResponse(
  dialect: Dialect,
  updateID: string,
  { messages, requiredPolicies }: { readonly messages: readonly string[]; readonly requiredPolicies: RequiredPolicy[] },
): Either<typeof CreateUpdateResponse, typeof ContractCreateUpdateResponse> {
  if (dialect === 'contract') return { updateID };
  return { updateID, requiredPolicies, messages: userMessages(messages) };
}

function userMessages(messages: readonly string[]) {
  return messages.map((message) => ({ severity: 'info', message }));
}

/** For the CLI, `version` is the version that the stack will have; for the contract, the one that the update starts from. */
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

/** Makes the CLI print the warnings. */
export function warn(reply: FastifyReply, warnings: readonly string[]): void {
  if (warnings.length > 0) void reply.header(warningHeader, asHeader(warnings.join('. ')));
}

/** Only for the CLI: no other client begins updates. */
export function beginResponse(
  created: {
    readonly updateId: string;
    readonly messages: readonly string[];
    readonly requiredPolicies: RequiredPolicy[];
  },
  { stack, ...started }: StartedUpdate & { readonly stack: StackRow },
): Static<typeof BeginUpdateResponse> {
  const { messages, requiredPolicies, updateId: updateID } = created;
  return {
    ...{ updateID, requiredPolicies, messages: userMessages(messages) },
    version: started.stackVersion,
    token: started.token,
    tokenExpiration: unixSeconds(started.expiresAt),
    ...(started.journalVersion > 0 ? { journalVersion: started.journalVersion } : {}),
    stack: {
      id: stack.id,
      orgName: stack.organization,
      projectName: stack.project,
      stackName: stack.stack,
      tags: readTags(stack.tags),
      version: stack.stackVersion,
      activeUpdate: updateID,
    },
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

/** The message is left out, because it may be large. */
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

/** Histories in the contract's dialect include all updates, as they were sent. */
export function historyView(dialect: Dialect): HistoryView {
  return dialect === 'contract' ? { shown: 'all', form: 'sent' } : { shown: 'updates', form: 'cli' };
}

/** Histories have no value for cancelled updates. */
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
