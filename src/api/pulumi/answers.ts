import type { StackListRow } from '../../shared/stacks/stack-repository.ts';
import type { UpdateStatus } from '../../shared/updates/update-state.ts';
import type { Dialect } from '../request.ts';

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
