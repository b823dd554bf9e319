import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';

/**
 * Records what somebody has done with their account: in the log of the server, and in those of the organizations that manage the account.
 * Other organizations of the person do not learn of it.
 */
export async function recordOfPerson(
  tx: Queryable,
  audit: AuditTrail,
  {
    login,
    ...event
  }: {
    readonly login: string;
    readonly object: string;
    readonly details: Readonly<Record<string, unknown>>;
    readonly action?: AuditAction;
  },
): Promise<void> {
  for (const organization of [null, ...(await createPeopleRepository(tx).listManagersOf(login))])
    await audit.record(tx, { organization, ...event });
}
