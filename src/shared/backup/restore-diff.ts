import type { StackHead, StackHeadRepository } from './stack-head-repository.ts';

/** A stack that is not the same in the old database as in the restored one. */
export interface WrittenStack {
  /** organization/project/stack */
  readonly stack: string;
  readonly change: 'updated' | 'created' | 'deleted';
  /** Its newest version in each database; null: it has no such stack. */
  readonly restoredVersion: number | null;
  readonly oldVersion: number | null;
  /** When the old database was last changed there. */
  readonly changedAt: string | null;
}

/** The stacks that were written in the old database after the restored one was copied from it, by name. */
export async function findWrittenAfter(
  restored: StackHeadRepository,
  old: StackHeadRepository,
): Promise<WrittenStack[]> {
  const before = new Map<string, StackHead>();
  for await (const row of restored.list()) before.set(row.id, row);
  const written: WrittenStack[] = [];
  for await (const { changedAt: at, head, id, stack, version } of old.list()) {
    const copy = before.get(id);
    before.delete(id);
    if (copy && copy.head === head && copy.version === version) continue;
    const changedAt = at.toISOString();
    const change = copy ? 'updated' : 'created';
    written.push({ stack, change, restoredVersion: copy?.version ?? null, oldVersion: version, changedAt });
  }
  for (const { stack, version } of before.values())
    written.push({ stack, change: 'deleted', restoredVersion: version, oldVersion: null, changedAt: null });
  return written.sort((one, other) => (one.stack < other.stack ? -1 : 1));
}
