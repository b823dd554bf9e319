import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { type AuditSource, ciRunOf } from '../../shared/audit/audit-event.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { formatStackRef } from '../../shared/stacks/names.ts';
import { assertNoFault } from '../../shared/state/journal/journal-fault.ts';
import { createNewUpdateRepository, type NewUpdate } from '../../shared/updates/new-update-repository.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Candidate, Findings } from './creation-checks.ts';

export type Stored = Pick<
  NewUpdate,
  | ('message' | 'environment' | 'config' | 'cliEnvironment' | 'cliConfig' | 'program')
  | ('tagsAtArrival' | 'waitSeconds')
>;

/** Returns the id. Throws StackBusyError, and JournalFaultError: that check is part of the insertion to save a round trip. */
export async function insertUpdate(
  { caller, isExclusive, isPreview, request, stack, tx }: Candidate,
  { waitedMs }: Findings,
  stored: Stored,
  audit: AuditTrail,
): Promise<string> {
  const update: NewUpdate = {
    ...{ ...stored, waitedMs, stackId: stack.id, baseStackVersion: stack.stackVersion },
    kind: request.kind,
    dryRun: isPreview,
    exclusive: isExclusive,
    ciRun: ciRunOf(request.environment),
    requestedBy: caller.userId,
    tokenId: caller.tokenId,
    organization: stack.organization,
    object: formatStackRef(stack),
    admitsFault: isPreview,
  };
  const insert = (source: AuditSource, action: AuditAction) =>
    createNewUpdateRepository(tx).insert(update, source, action);
  for (;;) {
    const id = await audit
      .recordWith(insert, (inserted) => inserted !== null)
      .catch((error: unknown) => {
        throw violatedConstraint(error) === 'updates_one_active_per_stack' ? new StackBusyError() : error;
      });
    if (id !== null) return id;
    // Does not throw if an operator has just accepted the fault.
    await assertNoFault(tx, stack.id);
  }
}
