import type { Queryable } from '../platform/db/sql.ts';
import { ConflictError } from '../platform/errors/errors.ts';
import { createCompactionRepository, type JournalFaultRow } from './compaction-repository.ts';
import type { UnknownKinds } from './replay/rules/replay.ts';

/** A part of the stack's state could not be made from its journal: nothing may build on it until an operator has decided. */
export class JournalFaultError extends ConflictError {
  override readonly name = 'JournalFaultError';
  override readonly code = 'journal-fault';
}

export type JournalFault = Pick<
  JournalFaultRow,
  'updateId' | 'stackVersion' | 'entryCount' | 'compactedEntries' | 'compactionError' | 'compactionWarning'
>;

/** What is wrong with the version's state, as one sentence or two. */
export function describeFault(fault: JournalFault): string {
  const version = `The state of version ${fault.stackVersion} (update ${fault.updateId})`;
  if (fault.compactionError === null) return `${version} may be incomplete: ${fault.compactionWarning}`;
  const { entryCount, compactedEntries } = fault;
  return (
    `${version} is incomplete: ${fault.compactionError}. The first ${compactedEntries} of ${entryCount} journal entries are in it, ` +
    `${entryCount - compactedEntries} are not.`
  );
}

/** What the compaction records of entries that it left out. */
export function describeUnknownKinds({ count, kind, sequenceId }: UnknownKinds): string {
  const what = count === 1 ? 'a journal entry' : `${count} journal entries`;
  return `this release does not know the kind of ${what} and left it out (first: entry ${sequenceId}, kind ${kind})`;
}

/** Throws JournalFaultError while a journal of the stack could not be replayed and no operator has accepted that. */
export async function assertNoFault(db: Queryable, stackId: string): Promise<void> {
  const faults = await createCompactionRepository(db).findFaults(stackId);
  const fault = faults.find(({ compactionError }) => compactionError !== null);
  if (!fault) return;
  const ref = `${fault.organization}/${fault.project}/${fault.stack}`;
  throw new JournalFaultError(
    `${describeFault(fault)} The stack takes no changes until an operator has run one of: holdfast admin refold ${ref}, ` +
      `holdfast admin accept ${ref}, holdfast admin restore ${ref} VERSION`,
  );
}

/** The CLI prints what this header of an answer says. */
export const warningHeader = 'x-pulumi-warning';

/** The sentence as the value of an HTTP header, which takes printable ASCII only. */
export function asHeader(sentence: string): string {
  return sentence.replace(/[^\x20-\x7e]/g, '?').slice(0, 1_000);
}
