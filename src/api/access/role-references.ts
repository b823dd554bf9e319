import type { GrantRole } from '../../shared/access/grant-repository.ts';
import type { PermissionSet } from '../../shared/access/permissions.ts';
import { type Role, rolePermissions, roles } from '../../shared/access/roles.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { createRoleRepository } from './role-repository.ts';

export const isId = isUuid;

/** The id of a built-in role is its name. */
export interface RoleReference {
  readonly id: string;
  readonly name: string;
  readonly permissions: PermissionSet;
  readonly given: GrantRole;
}

export function builtInRole(id: string): Role | null {
  return roles.find((role) => role === id) ?? null;
}

export async function findRole(db: Queryable, organizationId: string, id: string): Promise<RoleReference> {
  const builtIn = builtInRole(id);
  if (builtIn !== null) return { id, name: builtIn, permissions: rolePermissions[builtIn], given: { builtIn } };
  const role = isId(id) ? await createRoleRepository(db).find(organizationId, id) : null;
  if (!role) throw roleNotFound(id);
  return { id, name: role.name, permissions: role.permissions, given: { roleId: id } };
}

export function roleNotFound(id: string): NotFoundError {
  return new NotFoundError(
    `There is no role with the id ${JSON.stringify(id.slice(0, 60))}. 'pulumi org role list' shows the ids`,
  );
}
