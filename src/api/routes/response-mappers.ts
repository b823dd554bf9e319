import type { FastifyReply } from 'fastify';
import type { Static, TSchema } from 'typebox';
import { asHeader, describeFault, warningHeader } from '../../shared/journal/journal-fault.ts';
import type {
  ContractCreateStackResponse,
  ContractCreateUpdateResponse,
  ContractGetUpdateResponse,
  ContractImportResponse,
  ContractListedStack,
  ContractRenewLeaseResponse,
  ContractStackResponse,
  ContractStartUpdateResponse,
} from '../../shared/protocol/contract.ts';
import type { CreateStackResponse, ImportResponse, ListedStack, StackResponse } from '../../shared/protocol/stacks.ts';
import type {
  CreateUpdateResponse,
  GetUpdateResponse,
  RenewLeaseResponse,
  StartUpdateResponse,
} from '../../shared/protocol/updates.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { StackListRow, StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { UpdateInfoRow } from '../../shared/updates/history-repository.ts';
import { isActive, type UpdateStatus } from '../../shared/updates/update-state.ts';
import type { Dialect } from '../request.ts';
import type { StackView } from '../stacks/stack-view.ts';
import type { StartedUpdate } from '../updates/update-start.ts';

/** The only module that knows how the two dialects differ in their answers. */

type Either<Cli extends TSchema, Contract extends TSchema> = Static<Cli> | Static<Contract>;

export function unixSeconds(date: Date | null): number {
  return date ? Math.floor(date.getTime() / 1000) : 0;
}

export function createStackAnswer(
  dialect: Dialect,
  stack: StackRow,
): Either<typeof CreateStackResponse, typeof ContractCreateStackResponse> {
  const answer = { id: formatStackRef(stack), ...stackMembers(stack) };
  return dialect === 'contract' ? answer : { ...answer, messages: [] };
}

export function stackAnswer(
  dialect: Dialect,
  { stack, operation, faults }: StackView,
): Either<typeof StackResponse, typeof ContractStackResponse> {
  const error = faults.find(({ compactionError }) => compactionError !== null);
  const answer = {
    ...stackMembers(stack),
    activeUpdate: stack.activeUpdateId ?? '',
    ...(error ? { journalError: describeFault(error) } : {}),
  };
  if (dialect === 'contract') return answer;
  if (!operation) return { id: stack.id, ...answer };
  const { kind, author, startedAt } = operation;
  return { id: stack.id, ...answer, currentOperation: { kind, author, started: unixSeconds(startedAt) } };
}

/** Makes the CLI print what the stack's state lacks. */
export function warnOfFaults(reply: FastifyReply, { faults }: StackView): void {
  if (faults.length > 0) void reply.header(warningHeader, asHeader(faults.map(describeFault).join(' ')));
}

/** `lastUpdate` is a time for the CLI, 0 while the update runs; for the contract it is an object. Absent when there was none. */
export function listedStackAnswer(
  dialect: Dialect,
  stack: StackListRow,
): Either<typeof ListedStack, typeof ContractListedStack> {
  const answer = { ...stackMembers(stack), activeUpdate: stack.activeUpdateId ?? '' };
  const { lastKind: kind, lastStatus: status, resourceCount } = stack;
  const startTime = unixSeconds(stack.lastStartedAt);
  const updated = kind !== null && status !== null;
  if (dialect === 'contract') return { ...answer, ...(updated ? { lastUpdate: { kind, status, startTime } } : {}) };
  return {
    id: stack.id,
    ...answer,
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

/** The CLI reads `updateId`, the contract says `updateID`. */
export function importAnswer(
  dialect: Dialect,
  updateId: string,
): Either<typeof ImportResponse, typeof ContractImportResponse> {
  return dialect === 'contract' ? { updateID: updateId } : { updateId, updateID: updateId };
}

export function createUpdateAnswer(
  dialect: Dialect,
  updateID: string,
): Either<typeof CreateUpdateResponse, typeof ContractCreateUpdateResponse> {
  return dialect === 'contract' ? { updateID } : { updateID, requiredPolicies: [], messages: [] };
}

/** As version the CLI shows the one that the stack will have, the contract the one that the update starts from. */
export function startAnswer(
  dialect: Dialect,
  started: StartedUpdate,
): Either<typeof StartUpdateResponse, typeof ContractStartUpdateResponse> {
  return {
    version: dialect === 'contract' ? started.baseStackVersion : started.stackVersion,
    ...leaseAnswer(dialect, started.token, started.expiresAt),
    ...(started.journalVersion > 0 ? { journalVersion: started.journalVersion } : {}),
  };
}

/** The CLI wants seconds and fails on a string; the contract says ISO 8601. */
export function leaseAnswer(
  dialect: Dialect,
  token: string,
  expiresAt: Date,
): Either<typeof RenewLeaseResponse, typeof ContractRenewLeaseResponse> {
  return dialect === 'contract'
    ? { token, tokenExpiration: expiresAt.toISOString() }
    : { token, tokenExpiration: Math.floor(expiresAt.getTime() / 1000) };
}

/** An update without its message, which may be large. */
export function updateAnswer(
  dialect: Dialect,
  update: UpdateInfoRow,
): Omit<Static<typeof GetUpdateResponse>, 'message'> | Omit<Static<typeof ContractGetUpdateResponse>, 'message'> {
  const answer = {
    status: update.status,
    kind: update.kind,
    result: historyResult(update.status),
    startTime: unixSeconds(update.startedAt ?? update.createdAt),
    endTime: unixSeconds(update.endedAt),
    version: update.stackVersion ?? update.baseStackVersion,
  };
  if (dialect === 'contract') return answer;
  // The CLI polls until there is no token any more.
  return { updateID: update.id, ...answer, events: [], continuationToken: isActive(update.status) ? '0' : null };
}

/** The token of an event page without events. Null ends the CLI's loop; the contract's tokens are always text. */
export function lastTokenAnswer(dialect: Dialect, page: { isActive: boolean; after: number }): string | null {
  return dialect === 'contract' || page.isActive ? String(page.after) : null;
}

/** The contract's histories are of all updates. */
export function showsPreviews(dialect: Dialect): boolean {
  return dialect === 'contract';
}

/** The vocabulary of histories, which has no word for cancelled. */
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
