import { decryptsByRole, withDecryptByRole } from '../../shared/access/decrypt-by-role.ts';
import { createGrantRepository } from '../../shared/access/grant-repository.ts';
import { parseDefaults } from '../../shared/access/grants.ts';
import { namesOf, noPermissions, type PermissionSet } from '../../shared/access/permissions.ts';
import { rolePermissions } from '../../shared/access/roles.ts';
import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { findLastEdit } from '../platform/edits/last-edit.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../platform/edits/revisions.ts';
import type { Caller } from '../platform/http/request.ts';
import type { AccessPolicy, ChangeAccessPolicyRequest } from './access-policy.schemas.ts';
import { lockManagement } from './locked-access.ts';
import { changePeople } from './people-lock.ts';

export class AccessPolicyService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  async get(organization: string): Promise<AccessPolicy> {
    const id = await idOf(this.#db, organization);
    const { defaultPermissions } = await createGrantRepository(this.#db).findDefaults(id);
    return policyOf(defaultPermissions);
  }

  /** Takes effect with the commit, on all replicas. */
  async change(
    caller: Caller,
    organization: string,
    { decryptByRole, defaultPermissions: names }: ChangeAccessPolicyRequest,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    if (decryptByRole === undefined && names === undefined)
      throw new InvalidRequestError('Specify decryptByRole, defaultPermissions or both');
    const given = names === undefined ? undefined : readDefaults(names);
    await changePeople(this.#db, organization, async (tx) => {
      await lockManagement(tx, organization, caller);
      const id = await idOf(tx, organization);
      const grants = createGrantRepository(tx);
      const { defaultPermissions: before } = await grants.lockDefaults(id);
      await assertSeen(seen, revisionOfPolicy(policyOf(before)), 'the permissions of roles', () =>
        findLastEdit(tx, id, 'grant.defaults', () => true),
      );
      const chosen = given === undefined ? before : given;
      const defaults = decryptByRole === undefined ? chosen : withDecryptByRole(chosen, decryptByRole);
      if (defaults === before) return audit.settle();
      await grants.setDefaults(id, defaults);
      const details = {
        ...(decryptByRole === undefined ? {} : { decryptByRole }),
        defaultPermissions: defaults === null ? null : namesOf(defaults),
      };
      return audit.record(tx, { organization, object: organization, details });
    });
  }
}

/** The revision covers the fields that `change` sets. */
export function revisionOfPolicy({ decryptByRole, defaultPermissions }: AccessPolicy): string {
  return revisionOf({ decryptByRole, defaultPermissions });
}

function policyOf(defaults: PermissionSet | null): AccessPolicy {
  return {
    decryptByRole: decryptsByRole(defaults),
    defaultPermissions: defaults === null ? null : namesOf(defaults),
  };
}

/** Null: all permissions of the role. A limit with all permissions of a member is also no limit. */
function readDefaults(names: readonly string[] | null): PermissionSet | null {
  if (names === null) return null;
  const defaults = names.length === 0 ? noPermissions : parseDefaults(names);
  return (defaults & rolePermissions.member) === rolePermissions.member ? null : defaults;
}

async function idOf(db: Queryable, organization: string): Promise<string> {
  const found = await createIdentityRepository(db).findOrganization(organization);
  if (!found) throw new NotFoundError(`Organization '${organization}' not found`);
  return found.id;
}
