import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';

/**
 * Records actions of a user on their account in the logs of the server and of the organization that manages the account. Other
 * organizations of the user do not see them.
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
