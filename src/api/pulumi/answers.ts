import type { FastifyReply } from 'fastify';
import { asHeader, describeFault, warningHeader } from '../../shared/journal/journal-fault.ts';
import type { StackListRow } from '../../shared/stacks/stack-repository.ts';
import { readTags } from '../../shared/stacks/tags.ts';
import type { UpdateStatus } from '../../shared/updates/update-state.ts';
import type { Dialect } from '../request.ts';
import type { StackView } from '../stacks/stack-view.ts';
import type { StartedUpdate } from '../updates/update-start.ts';

/** The only module that knows how the two dialects differ in their answers. */

export function unixSeconds(date: Date | null): number {
  return date ? Math.floor(date.getTime() / 1000) : 0;
}

/** The CLI wants seconds and fails on a string; the contract says ISO 8601. */
export function expirationAnswer(dialect: Dialect, expiresAt: Date): number | string {
  return dialect === 'pulumi' ? Math.floor(expiresAt.getTime() / 1000) : expiresAt.toISOString();
}

/** The version at start: the CLI shows the one the stack will have, the contract the one the update starts from. */
export function startVersionAnswer(
  dialect: Dialect,
  versions: { stackVersion: number; baseStackVersion: number },
): number {
  return dialect === 'pulumi' ? versions.stackVersion : versions.baseStackVersion;
}

/** apitype.StartUpdateResponse. */
export function startAnswer(dialect: Dialect, started: StartedUpdate) {
  return {
    version: startVersionAnswer(dialect, started),
    token: started.token,
    tokenExpiration: expirationAnswer(dialect, started.expiresAt),
    ...(started.journalVersion > 0 ? { journalVersion: started.journalVersion } : {}),
  };
}

/** apitype.Stack. */
export function stackAnswer({ stack, operation, faults }: StackView) {
  const error = faults.find(({ foldError }) => foldError !== null);
  return {
    id: stack.id,
    orgName: stack.organization,
    projectName: stack.project,
    stackName: stack.stack,
    tags: readTags(stack.tags),
    version: stack.stackVersion,
    activeUpdate: stack.activeUpdateId ?? '',
    ...(operation
      ? {
          currentOperation: {
            kind: operation.kind,
            author: operation.author,
            started: unixSeconds(operation.startedAt),
          },
        }
      : {}),
    ...(error ? { foldError: describeFault(error) } : {}),
  };
}

/** Has the CLI print what the stack's state lacks. */
export function warnOfFaults(reply: FastifyReply, { faults }: StackView): void {
  if (faults.length > 0) void reply.header(warningHeader, asHeader(faults.map(describeFault).join(' ')));
}

/** In the CLI's dialect a time, 0 while the update runs, absent when there was none; an object in the contract's. */
export function lastUpdateAnswer(
  dialect: Dialect,
  stack: StackListRow,
): number | { kind: string; status: string; startTime: number } | undefined {
  if (stack.lastKind === null || stack.lastStatus === null) return undefined;
  const startTime = unixSeconds(stack.lastStartedAt);
  if (dialect === 'contract') return { kind: stack.lastKind, status: stack.lastStatus, startTime };
  return stack.activeUpdateId === null ? startTime : 0;
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
