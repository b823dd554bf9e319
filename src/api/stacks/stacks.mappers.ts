import type { FastifyReply } from 'fastify';
import { formatStackRef } from '../../shared/stacks/names.ts';
import type { StackListRow } from '../../shared/stacks/stack-list-repository.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import { asHeader, describeFault, warningHeader } from '../../shared/state/journal/journal-fault.ts';
import type { Dialect } from '../platform/http/request.ts';
import { unixSeconds } from '../platform/http/unix-seconds.ts';
import type {
  ContractCreateStackResponse,
  ContractListedStack,
  ContractStackResponse,
} from '../platform/protocol/contract.ts';
import type { Either } from '../platform/protocol/core.ts';
import type { StackView } from './stack-view.ts';
import type { CreateStackResponse, ListedStack, StackResponse } from './stacks.schemas.ts';

// How responses about stacks differ between the two dialects.

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

/** Makes the CLI print the faults of the stack's state. */
export function warnOfFaults(reply: FastifyReply, { faults }: StackView): void {
  if (faults.length > 0) void reply.header(warningHeader, asHeader(faults.map(describeFault).join(' ')));
}

/** `lastUpdate`: a time for the CLI (0 while the update runs), an object for the contract. Absent if there was no update. */
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

/**
 * `chunks` yields rows and returns the token of the next page. The last page has no token at all: an empty one would make the CLI loop
 * forever.
 */
export async function* stackListJson(
  chunks: AsyncGenerator<readonly StackListRow[], string | null>,
  show: (row: StackListRow) => object,
): AsyncGenerator<string> {
  let isFirst = true;
  yield '{"stacks":[';
  for (;;) {
    const chunk = await chunks.next();
    if (chunk.done) {
      yield chunk.value === null ? ']}' : `],"continuationToken":${JSON.stringify(chunk.value)}}`;
      return;
    }
    const rows = chunk.value.map((row) => JSON.stringify(show(row))).join(',');
    yield isFirst ? rows : `,${rows}`;
    isFirst = false;
  }
}
