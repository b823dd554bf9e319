import { createCompactionRepository } from '../../shared/journal/compaction-repository.ts';
import type { JournalFault } from '../../shared/journal/journal-fault.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';

/** A stack as it is shown. */
export interface StackView {
  readonly stack: StackRow;
  /** What the update does that holds the stack. */
  readonly operation: { readonly kind: string; readonly author: string; readonly startedAt: Date } | null;
  /** What its state lacks. */
  readonly faults: readonly JournalFault[];
}

/** Reads what is shown of a stack besides its row. */
export async function readStackView(db: Queryable, stack: StackRow): Promise<StackView> {
  const faults = await createCompactionRepository(db).findFaults(stack.id);
  const operation =
    stack.activeUpdateId === null ? null : await createStackRepository(db).findCurrentOperation(stack.id);
  return { stack, operation, faults };
}
