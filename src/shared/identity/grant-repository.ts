import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { PermissionSet } from './permissions.ts';

const Text = Nullable(Type.String());

const GrantRow = Type.Object({
  id: Type.String(),
  effect: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
  permissions: Type.Integer(),
  projectPattern: Text,
  stackPattern: Text,
  tagName: Text,
  tagValue: Text,
  /** Login, name of the team, or name of the token: one of them. */
  user: Text,
  team: Text,
  token: Text,
  createdAt: Timestamp,
});
export type GrantRow = Row<typeof GrantRow>;

const NameRow = Type.Object({ name: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const DefaultsRow = Type.Object({ defaultPermissions: Nullable(Type.Integer()), isRestricted: Type.Boolean() });

/** To whom a grant is given. */
export type GrantSubject = { readonly userId: string } | { readonly teamId: string } | { readonly tokenId: string };

export interface NewGrant {
  readonly organizationId: string;
  readonly effect: 'allow' | 'deny';
  readonly permissions: PermissionSet;
  /** Patterns in which `*` stands for any characters; null matches all. */
  readonly projectPattern: string | null;
  readonly stackPattern: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
  readonly subject: GrantSubject;
  /** Null for an operator. */
  readonly createdBy: string | null;
}

/** The grant `g` as it decides. */
export const grantFacts = sql.fragment`jsonb_build_object(
  'deny', g.effect = 'deny', 'token', g.token_id is not null, 'permissions', g.permissions, 'project', g.project_pattern,
  'stack', g.stack_pattern, 'tagName', g.tag_name, 'tagValue', g.tag_value)`;

/** Grants and defaults of organizations. Triggers end leases that a change no longer permits, in the same transaction. */
export function createGrantRepository(db: Queryable) {
  return {
    insert: async (grant: NewGrant): Promise<string> => {
      const { subject } = grant;
      const row = await db.one(sql.rows(IdRow)`
        /* grants.insert */
        insert into grants (organization_id, effect, permissions, project_pattern, stack_pattern, tag_name, tag_value,
                            user_id, team_id, token_id, created_by)
        values (${grant.organizationId}, ${grant.effect}, ${grant.permissions}, ${grant.projectPattern}, ${grant.stackPattern},
                ${grant.tagName}, ${grant.tagValue}, ${'userId' in subject ? subject.userId : null},
                ${'teamId' in subject ? subject.teamId : null}, ${'tokenId' in subject ? subject.tokenId : null}, ${grant.createdBy})
        returning id`);
      return row.id;
    },

    /** Returns whether it existed. */
    remove: async (organizationId: string, id: string): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* grants.remove */ delete from grants where organization_id = ${organizationId} and id = ${id}`);
      return result.rowCount > 0;
    },

    list: (organizationId: string) =>
      db.any(sql.rows(GrantRow)`
        /* grants.list */
        select g.id, g.effect, g.permissions, g.project_pattern as "projectPattern", g.stack_pattern as "stackPattern",
               g.tag_name as "tagName", g.tag_value as "tagValue", u.login as "user", e.name as team,
               case when t.id is not null then coalesce(t.name, t.id::text) end as token, g.created_at as "createdAt"
        from grants g left join users u on u.id = g.user_id left join teams e on e.id = g.team_id
        left join api_tokens t on t.id = g.token_id
        where g.organization_id = ${organizationId} order by g.created_at, g.id`),

    /** Tags by which grants of the organization select stacks. */
    listTagNames: async (organizationId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* grants.listTagNames */
        select distinct tag_name as name from grants where organization_id = ${organizationId} and tag_name is not null order by 1`);
      return rows.map(({ name }) => name);
    },

    findDefaults: (organizationId: string) =>
      db.one(sql.rows(DefaultsRow)`
        /* grants.findDefaults */
        select default_permissions as "defaultPermissions", is_restricted as "isRestricted"
        from organization_access where organization_id = ${organizationId}`),

    /** The defaults, until the end of the transaction. */
    lockDefaults: (organizationId: string) =>
      db.one(sql.rows(DefaultsRow)`
        /* grants.lockDefaults */
        select default_permissions as "defaultPermissions", is_restricted as "isRestricted"
        from organization_access where organization_id = ${organizationId} for update`),

    /** What roles below admin give at most; null: all that the role has. */
    setDefaults: (organizationId: string, permissions: PermissionSet | null) =>
      db.query(sql.nothing`
        /* grants.setDefaults */
        update organization_access set default_permissions = ${permissions} where organization_id = ${organizationId}`),
  };
}
export type GrantRepository = ReturnType<typeof createGrantRepository>;
