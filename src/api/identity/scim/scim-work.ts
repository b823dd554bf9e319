import type { AuditEvent } from '../../../shared/audit/audit-event.ts';
import { createIdentityRepository } from '../../../shared/identity/identity-repository.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../../shared/platform/db/sqlstate.ts';
import { UnauthenticatedError } from '../../../shared/platform/errors/errors.ts';
import { changePeople } from '../../access/people-lock.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';
import { ScimError } from './scim-error.ts';

export interface ListRequest {
  readonly filter: string | null;
  readonly offset: number;
  readonly limit: number;
}

export interface ScimList<Item> {
  readonly total: number;
  /** Index of the first row, from 1. */
  readonly startIndex: number;
  readonly rows: readonly Item[];
}

export interface ScimWork {
  readonly tx: Queryable;
  readonly organization: string;
  readonly organizationId: string;
  /** The action of the route is the default. */
  readonly record: (object: string, event?: Partial<AuditEvent>) => Promise<void>;
}

const uniqueConstraints = new Map([
  ['scim_users_external_id_key', 'Another user has this externalId'],
  ['scim_groups_external_id_key', 'Another group has this externalId'],
  ['scim_groups_display_name', 'Another group has this displayName'],
  ['teams_name_key', 'There is another team with this name'],
]);

/**
 * Runs a change in one transaction with its events. Changes run one at a time. A token that was revoked while the change waited has no
 * effect. Throws ScimError, UnauthenticatedError.
 */
export async function provision<T>(
  db: Database,
  {
    caller,
    organization,
    audit,
  }: { readonly caller: Caller; readonly organization: string; readonly audit: AuditTrail },
  change: (work: ScimWork) => Promise<T>,
): Promise<T> {
  try {
    return await changePeople(db, organization, async (tx) => {
      const identity = createIdentityRepository(tx);
      const found = await identity.findOrganization(organization);
      if (!found || !(await identity.isTokenOf(caller.tokenId, found.id)))
        throw new UnauthenticatedError('The API token is not valid: unknown, revoked or expired');
      const record: ScimWork['record'] = (object, event = {}) => audit.record(tx, { organization, object, ...event });
      const result = await change({ tx, organization, organizationId: found.id, record });
      if (!audit.isSettled) audit.settle();
      return result;
    });
  } catch (error) {
    const detail = uniqueConstraints.get(violatedConstraint(error) ?? '');
    if (detail === undefined) throw error;
    throw new ScimError('uniqueness', detail, { cause: error });
  }
}
