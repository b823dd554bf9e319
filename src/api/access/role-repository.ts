import { Type } from 'typebox';
import type { PermissionSet } from '../../shared/access/permissions.ts';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { Timestamp } from '../../shared/platform/schema/standard-schema.ts';

const RoleRow = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  permissions: Type.Integer(),
  roleVersion: Type.Integer(),
  createdAt: Timestamp,
  changedAt: Timestamp,
});
export type RoleRow = Row<typeof RoleRow>;

const OrganizationRow = Type.Object({ id: Type.String(), createdAt: Timestamp });
const CountRow = Type.Object({ count: Type.Integer() });

export interface RoleText {
  readonly name: string;
  readonly description: string;
  readonly permissions: PermissionSet;
}

/** A trigger copies the roles' permissions into the grants that give them. */
export function createRoleRepository(db: Queryable) {
  const columns = sql.fragment`id, name, description, permissions, role_version as "roleVersion", created_at as "createdAt",
    changed_at as "changedAt"`;
  return {
    /** Built-in roles are as old as the organization. */
    findOrganization: (name: string) =>
      db.maybeOne(sql.rows(OrganizationRow)`
        /* roles.findOrganization */ select id, created_at as "createdAt" from organizations where name = ${name}`),

    list: (organizationId: string) =>
      db.any(sql.rows(RoleRow)`
        /* roles.list */ select ${columns} from roles where organization_id = ${organizationId} order by lower(name)`),

    find: (organizationId: string, id: string) =>
      db.maybeOne(sql.rows(RoleRow)`
        /* roles.find */ select ${columns} from roles where organization_id = ${organizationId} and id = ${id}`),

    /** Counts at most `limit` roles. */
    count: async (organizationId: string, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* roles.count */
        select count(*) as count from (select 1 from roles where organization_id = ${organizationId} limit ${limit}) counted`);
      return count;
    },

    /** Violates `roles_name_key` if there is a role with that name, in any case of letters. */
    insert: (organizationId: string, { description, name, permissions }: RoleText) =>
      db.one(sql.rows(RoleRow)`
        /* roles.insert */
        insert into roles (organization_id, name, description, permissions)
        values (${organizationId}, ${name}, ${description}, ${permissions}) returning ${columns}`),

    /** Violates `roles_name_key` if another role has the name. */
    change: (id: string, { description, name, permissions }: RoleText) =>
      db.one(sql.rows(RoleRow)`
        /* roles.change */
        update roles set name = ${name}, description = ${description}, permissions = ${permissions},
          role_version = role_version + 1, changed_at = now()
        where id = ${id} returning ${columns}`),

    countGrants: async (id: string): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* roles.countGrants */ select count(*) as count from grants where role_id = ${id}`);
      return count;
    },

    /** Also removes the grants that give the role. */
    remove: (id: string) => db.query(sql.nothing`/* roles.remove */ delete from roles where id = ${id}`),
  };
}
