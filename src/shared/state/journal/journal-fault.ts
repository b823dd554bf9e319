import type { Queryable } from '../../platform/db/sql.ts';
import { ConflictError } from '../../platform/errors/errors.ts';
import { createCompactionRepository, type JournalFaultRow, unknownKindText } from './compaction-repository.ts';
import type { UnknownKinds } from './replay/rules/apply-entries.ts';

/** Blocks changes until an operator has decided what to do. */
export class JournalFaultError extends ConflictError {
  override readonly name = 'JournalFaultError';
  override readonly code = 'journal-fault';
}

/** The missing entries may still arrive, so the update cannot end as succeeded yet. */
export class JournalGapError extends ConflictError {
  override readonly name = 'JournalGapError';
  override readonly code = 'journal-gap';

  constructor(missingEntries: string) {
    super(
      `The journal of this update is not complete: entries ${missingEntries} are missing. They never arrived, or were lost after they had ` +
        'been acknowledged, for example by a restore or a failover of the database. End the update by `pulumi cancel`, then run ' +
        '`pulumi state repair` and `pulumi refresh`',
    );
  }
}

export type JournalFault = Pick<
  JournalFaultRow,
  'updateId' | 'stackVersion' | 'entryCount' | 'compactedEntries' | 'compactionError' | 'compactionWarning'
>;

export function describeFault(fault: JournalFault): string {
  const version = `The state of version ${fault.stackVersion} (update ${fault.updateId})`;
  if (fault.compactionError === null) return `${version} may be incomplete: ${fault.compactionWarning}`;
  const { entryCount, compactedEntries } = fault;
  const besides = fault.compactionWarning === null ? '' : ` Besides, ${fault.compactionWarning}.`;
  return (
    `${version} is incomplete: ${fault.compactionError}. The first ${compactedEntries} of ${entryCount} journal entries are in it, ` +
    `${entryCount - compactedEntries} are not.${besides}`
  );
}

export function describeUnknownKinds({ count, kind, sequenceId }: UnknownKinds): string {
  const subject = count === 1 ? 'a journal entry' : `${count} journal entries`;
  return `${unknownKindText} ${subject} and left it out (first: entry ${sequenceId}, kind ${kind})`;
}

/** Throws JournalFaultError for a compaction error that no operator has accepted. */
export async function assertNoFault(db: Queryable, stackId: string): Promise<void> {
  const faults = await createCompactionRepository(db).findFaults(stackId);
  const fault = faults.find(({ compactionError }) => compactionError !== null);
  if (!fault) return;
  const ref = `${fault.organization}/${fault.project}/${fault.stack}`;
  throw new JournalFaultError(
    `${describeFault(fault)} The stack accepts no changes until an operator has run one of: holdfast admin recompact ${ref}, ` +
      `holdfast admin accept ${ref}, holdfast admin restore ${ref} VERSION`,
  );
}

/** The CLI prints this response header. */
export const warningHeader = 'x-pulumi-warning';

/** Printable ASCII, at most 1,000 characters. */
export function asHeader(sentence: string): string {
  return sentence.replace(/[^\x20-\x7e]/g, '?').slice(0, 1_000);
}
