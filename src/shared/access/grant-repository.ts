import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { limitLockWait } from '../platform/db/limit-lock-wait.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { PermissionSet } from './permissions.ts';
import { Role } from './roles.ts';

const Text = Nullable(Type.String());

const GrantRow = Type.Object({
  id: Type.String(),
  effect: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
  permissions: Type.Integer(),
  projectPattern: Text,
  stackPattern: Text,
  tagName: Text,
  tagValue: Text,
  /** A login, the name of a team, or the name of a token: one of these is set. */
  user: Text,
  team: Text,
  token: Text,
  tokenId: Text,
  /** A named role of the organization, or a built-in one. */
  roleId: Text,
  roleName: Text,
  builtInRole: Nullable(Role),
  createdAt: Timestamp,
  /** Microseconds since the epoch. A `Date` is too coarse for the continuation of a list. */
  micros: Type.Integer(),
});
export type GrantRow = Row<typeof GrantRow>;

const NameRow = Type.Object({ name: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const DistinguishedRow = Type.Object({ distinguishes: Type.Boolean() });
const DefaultsRow = Type.Object({ defaultPermissions: Nullable(Type.Integer()) });

export type GrantSubject = { readonly userId: string } | { readonly teamId: string } | { readonly tokenId: string };

/** Grants apply to a stack by these names and tags. */
export interface GrantedStack {
  readonly project: string;
  readonly stack: string;
  readonly tags: Readonly<Record<string, string>>;
}

export type GrantRole = { readonly roleId: string } | { readonly builtIn: Role };

/** The order is by time, oldest first. */
export interface GrantCursor {
  readonly micros: number;
  readonly id: string;
}

export interface NewGrant {
  readonly organizationId: string;
  readonly effect: 'allow' | 'deny';
  /** Those of the role, if the grant has one. */
  readonly permissions: PermissionSet;
  readonly role?: GrantRole;
  /** `*` matches any characters; null matches all. */
  readonly projectPattern: string | null;
  readonly stackPattern: string | null;
  readonly tagName: string | null;
  readonly tagValue: string | null;
  readonly subject: GrantSubject;
  /** Null for an operator. */
  readonly createdBy: string | null;
  /** The end of this stack also ends the grant. */
  readonly stackId?: string;
}

/** The columns of the grant `g` that decide about permissions. */
export const grantFacts = sql.fragment`jsonb_build_object(
  'deny', g.effect = 'deny', 'token', g.token_id is not null, 'permissions', g.permissions, 'project', g.project_pattern,
  'stack', g.stack_pattern, 'tagName', g.tag_name, 'tagValue', g.tag_value)`;

/** The grant `g` applies to the stack. */
export const holdsOn = ({ project, stack, tags }: GrantedStack) => sql.fragment`
  name_matches(g.project_pattern, ${project}) and name_matches(g.stack_pattern, ${stack})
  and (g.tag_name is null or exists (
    select 1 from jsonb_each_text(${JSON.stringify(tags)}::jsonb) tag
    where tag.key = g.tag_name and (g.tag_value is null or tag.value = g.tag_value)))`;

export const AllGrants = Type.Object({ allowed: Type.Integer(), denied: Type.Integer() });
export type AllGrants = Row<typeof AllGrants>;

/** What the grants `g` allow and deny together. */
export const allGrants = sql.fragment`
  coalesce(bit_or(g.permissions) filter (where g.effect = 'allow'), 0) as allowed,
  coalesce(bit_or(g.permissions) filter (where g.effect = 'deny'), 0) as denied`;

/** Triggers end leases that are no longer permitted, in the transaction of the change. */
export function createGrantRepository(db: Queryable) {
  const given = sql.fragment`
    g.id, g.effect, g.permissions, g.project_pattern as "projectPattern", g.stack_pattern as "stackPattern",
    g.tag_name as "tagName", g.tag_value as "tagValue", u.login as "user", e.name as team,
    case when t.id is not null then coalesce(t.name, t.id::text) end as token, g.token_id as "tokenId", g.role_id as "roleId",
    r.name as "roleName", g.built_in_role as "builtInRole", g.created_at as "createdAt",
    (extract(epoch from g.created_at) * 1000000)::bigint as micros`;
  const joined = sql.fragment`
    grants g left join users u on u.id = g.user_id left join teams e on e.id = g.team_id
    left join api_tokens t on t.id = g.token_id left join roles r on r.id = g.role_id`;
  const isOf = (subject: GrantSubject) =>
    'userId' in subject
      ? sql.fragment`g.user_id = ${subject.userId}`
      : 'teamId' in subject
        ? sql.fragment`g.team_id = ${subject.teamId}`
        : sql.fragment`g.token_id = ${subject.tokenId}`;
  /** Grants that give the team a role on all stacks. */
  const assigned = (teamId: string) => sql.fragment`
    g.team_id = ${teamId} and (g.role_id is not null or g.built_in_role is not null) and g.effect = 'allow'
    and g.project_pattern is null and g.stack_pattern is null and g.tag_name is null`;
  const everything = sql.fragment`true`;
  const insertAll = async (grants: readonly NewGrant[]): Promise<string[]> => {
    const rows = grants.map(({ role, subject, ...grant }) => ({
      ...grant,
      ...subject,
      id: randomUUID(),
      roleId: role && 'roleId' in role ? role.roleId : null,
      builtInRole: role && 'builtIn' in role ? role.builtIn : null,
    }));
    await db.query(sql.nothing`
      /* grants.insert */
      insert into grants (id, organization_id, effect, permissions, project_pattern, stack_pattern, tag_name, tag_value,
                          user_id, team_id, token_id, role_id, built_in_role, created_by, stack_id, created_at)
      select g.id, g."organizationId", g.effect, g.permissions, g."projectPattern", g."stackPattern", g."tagName", g."tagValue",
        g."userId", g."teamId", g."tokenId", g."roleId", g."builtInRole", g."createdBy", g."stackId",
        clock_timestamp()
      from jsonb_array_elements(${JSON.stringify(rows)}::jsonb) with ordinality as e (value, position)
      cross join lateral jsonb_to_record(e.value) as g (id uuid, "organizationId" uuid, effect text, permissions integer,
        "projectPattern" text, "stackPattern" text, "tagName" text, "tagValue" text, "userId" uuid, "teamId" uuid, "tokenId" uuid,
        "roleId" uuid, "builtInRole" text, "createdBy" uuid, "stackId" uuid)
      order by e.position`);
    return rows.map(({ id }) => id);
  };
  return {
    insert: async (grant: NewGrant): Promise<string> => {
      const [id] = await insertAll([grant]);
      return id as string;
    },

    /** Takes one statement, so that its triggers run once. Returns the ids. Lists keep this order. */
    insertAll,

    /** Takes one statement. Returns the number of removed grants. */
    removeAll: async (organizationId: string, ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* grants.removeAll */
        delete from grants where organization_id = ${organizationId} and id = any (${sql.array([...ids], 'uuid')})`);
      return rowCount;
    },

    /** Returns whether the grant existed. */
    remove: async (organizationId: string, id: string): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* grants.remove */ delete from grants where organization_id = ${organizationId} and id = ${id}`);
      return result.rowCount > 0;
    },

    /** Teams with grants that end with the stack. */
    listTeamsOfStack: async (organizationId: string, stackId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* grants.listTeamsOfStack */
        select distinct e.name from grants g join teams e on e.id = g.team_id
        where g.organization_id = ${organizationId} and g.stack_id = ${stackId} order by 1`);
      return rows.map(({ name }) => name);
    },

    /**
     * Removes the grants that end with the stack, which locks the organization. From then on, the transaction waits at most two seconds for
     * each lock, because other transactions wait for it.
     */
    removeOfStack: async (organizationId: string, stackId: string): Promise<void> => {
      await db.query(sql.nothing`
        /* grants.removeOfStack */ delete from grants where organization_id = ${organizationId} and stack_id = ${stackId}`);
      await limitLockWait(db, 2_000);
    },

    list: (organizationId: string) =>
      db.any(sql.rows(GrantRow)`
        /* grants.list */
        select ${given} from ${joined} where g.organization_id = ${organizationId} order by g.created_at, g.id`),

    /** Reads a range of one index. `stack` limits the page to grants that apply to this stack. */
    listPage: (
      organizationId: string,
      {
        after,
        limit,
        stack = null,
        subject,
      }: {
        readonly subject: GrantSubject | null;
        readonly stack?: GrantedStack | null;
        readonly after: GrantCursor | null;
        readonly limit: number;
      },
    ) =>
      db.any(sql.rows(GrantRow)`
        /* grants.listPage */
        select ${given} from ${joined}
        where g.organization_id = ${organizationId} and ${subject === null ? everything : isOf(subject)}
          and ${stack === null ? everything : holdsOn(stack)}
          and ${
            after === null
              ? everything
              : sql.fragment`(g.created_at, g.id) >
                  (timestamptz 'epoch' + ${after.micros}::bigint * interval '1 microsecond', ${after.id}::uuid)`
          }
        order by g.created_at, g.id limit ${limit}`),

    find: (organizationId: string, id: string) =>
      db.maybeOne(sql.rows(GrantRow)`
        /* grants.find */ select ${given} from ${joined} where g.organization_id = ${organizationId} and g.id = ${id}`),

    listByIds: (organizationId: string, ids: readonly string[]) =>
      db.any(sql.rows(GrantRow)`
        /* grants.listByIds */
        select ${given} from ${joined}
        where g.organization_id = ${organizationId} and g.id = any (${sql.array([...ids], 'uuid')}) order by g.created_at, g.id`),

    /** Ignores `besides`, and grants that end with a stack. */
    findSame: async (grant: NewGrant, besides: readonly string[] = []): Promise<string | null> => {
      const { role } = grant;
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* grants.findSame */
        select g.id from grants g where g.organization_id = ${grant.organizationId} and ${isOf(grant.subject)}
          and g.effect = ${grant.effect} and g.permissions = ${grant.permissions} and g.stack_id is null
          and (g.project_pattern, g.stack_pattern, g.tag_name, g.tag_value, g.role_id, g.built_in_role) is not distinct from
            (${grant.projectPattern}, ${grant.stackPattern}, ${grant.tagName}, ${grant.tagValue},
             ${role && 'roleId' in role ? role.roleId : null}::uuid, ${role && 'builtIn' in role ? role.builtIn : null})
          and g.id <> all (${sql.array([...besides], 'uuid')})
        order by g.created_at, g.id limit 1`);
      return row?.id ?? null;
    },

    listAssigned: (teamId: string) =>
      db.any(sql.rows(GrantRow)`
        /* grants.listAssigned */ select ${given} from ${joined} where ${assigned(teamId)} order by g.created_at, g.id`),

    /**
     * Whether a grant of the organization applies to only one of these stacks, or the scopes of a token or a policy for CI runs permit more
     * on `other`.
     */
    distinguishes: async (organizationId: string, one: GrantedStack, other: GrantedStack): Promise<boolean> => {
      const scoped = ({ project, stack }: GrantedStack) => sql.fragment`
        coalesce(bit_or(s.permissions) filter (where name_matches(s.project, ${project}) and name_matches(s.stack, ${stack})), 0)`;
      const { distinguishes } = await db.one(sql.rows(DistinguishedRow)`
        /* grants.distinguishes */
        select exists (select 1 from grants g where g.organization_id = ${organizationId} and (${holdsOn(one)}) <> (${holdsOn(other)}))
          or ${one.project !== other.project || one.stack !== other.stack} and exists (
            select 1 from (
              select t.scopes from api_tokens t where t.organization_id = ${organizationId} and t.policy_id is null and t.scopes is not null
                and t.revoked_at is null and (t.expires_at is null or t.expires_at > now())
              union all select p.scopes from trusted_issuers i join trust_policies p on p.issuer_id = i.id
              where i.organization_id = ${organizationId} and p.scopes is not null and p.decision = 'allow' and p.token_kind <> 'personal'
            ) held where exists (
              select 1 from jsonb_to_recordset(held.scopes) as s (project text, stack text, permissions integer)
              having (${scoped(other)} & ~${scoped(one)}) <> 0))
          as "distinguishes"`);
      return distinguishes;
    },

    listTagNames: async (organizationId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* grants.listTagNames */
        select distinct tag_name as name from grants where organization_id = ${organizationId} and tag_name is not null order by 1`);
      return rows.map(({ name }) => name);
    },

    findDefaults: (organizationId: string) =>
      db.one(sql.rows(DefaultsRow)`
        /* grants.findDefaults */
        select default_permissions as "defaultPermissions"
        from organization_access where organization_id = ${organizationId}`),

    /** Locks the defaults until the end of the transaction. */
    lockDefaults: (organizationId: string) =>
      db.one(sql.rows(DefaultsRow)`
        /* grants.lockDefaults */
        select default_permissions as "defaultPermissions"
        from organization_access where organization_id = ${organizationId} for no key update`),

    /** Limits roles below admin; null for no limit. */
    setDefaults: (organizationId: string, permissions: PermissionSet | null) =>
      db.query(sql.nothing`
        /* grants.setDefaults */
        update organization_access set default_permissions = ${permissions} where organization_id = ${organizationId}`),
  };
}
export type GrantRepository = ReturnType<typeof createGrantRepository>;
