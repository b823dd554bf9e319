import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createStackRepository, type StackRow, type StackWithFaults } from '../../shared/stacks/stack-repository.ts';
import { createCompactionRepository } from '../../shared/state/journal/compaction-repository.ts';
import type { JournalFault } from '../../shared/state/journal/journal-fault.ts';

export interface StackView {
  readonly stack: StackRow;
  /** The update that locks the stack. */
  readonly operation: { readonly kind: string; readonly author: string; readonly startedAt: Date } | null;
  /** Faults that leave the stack's state incomplete. */
  readonly faults: readonly JournalFault[];
}

export async function readStackView(db: Queryable, { hasFaults, ...stack }: StackWithFaults): Promise<StackView> {
  const faults = hasFaults ? await createCompactionRepository(db).findFaults(stack.id) : [];
  const operation =
    stack.activeUpdateId === null ? null : await createStackRepository(db).findCurrentOperation(stack.id);
  return { stack, operation, faults };
}

/** For callers who may read only the outputs. */
export function nameOnly(stack: StackRow): StackView {
  const shown = { ...stack, id: '', tags: '{}', stackVersion: 0, checkpointId: null, activeUpdateId: null };
  return { stack: shown, operation: null, faults: [] };
}
