import { decryptsByRole, withDecryptByRole } from '../../shared/identity/decrypt-by-role.ts';
import { createGrantRepository } from '../../shared/identity/grant-repository.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { holdManagement } from '../access/held-access.ts';
import type { ApiContext } from '../api-context.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Caller } from '../request.ts';

/** What organizations have decided about their roles. */
export class AccessPolicyService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Whether roles below admin may decrypt. Throws NotFoundError. */
  async decryptsByRole(organization: string): Promise<boolean> {
    const id = await idOf(this.#db, organization);
    return decryptsByRole((await createGrantRepository(this.#db).findDefaults(id)).defaultPermissions);
  }

  /** Lets roles below admin decrypt, or not. Holds from the commit on, on all replicas. Throws NotFoundError, UnauthenticatedError, ForbiddenError. */
  async setDecryptByRole(caller: Caller, organization: string, isOn: boolean, audit: AuditTrail): Promise<void> {
    await this.#db.inTransaction(async (tx) => {
      await createPeopleRepository(tx).lock();
      await holdManagement(tx, organization, caller);
      const id = await idOf(tx, organization);
      const grants = createGrantRepository(tx);
      const { defaultPermissions } = await grants.lockDefaults(id);
      if (decryptsByRole(defaultPermissions) === isOn) return audit.settle();
      await grants.setDefaults(id, withDecryptByRole(defaultPermissions, isOn));
      return audit.record(tx, { organization, object: organization, details: { decryptByRole: isOn } });
    });
  }
}

async function idOf(db: Queryable, organization: string): Promise<string> {
  const found = await createIdentityRepository(db).findOrganization(organization);
  if (!found) throw new NotFoundError(`Organization '${organization}' not found`);
  return found.id;
}
