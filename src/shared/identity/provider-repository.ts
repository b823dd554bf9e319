import { Type } from 'typebox';
import { Role } from '../access/roles.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

const IdentityRow = Type.Object({ userId: Type.String(), login: Type.String(), isActive: Type.Boolean() });
export type IdentityRow = Row<typeof IdentityRow>;

const DataRow = Type.Object({ data: Type.String() });
const NameRow = Type.Object({ name: Type.String() });
const LoginRow = Type.Object({ login: Type.String() });
const IdRow = Type.Object({ id: Type.String() });
const MembershipRow = Type.Object({
  organizationId: Type.String(),
  organization: Type.String(),
  role: Role,
  /** Given by groups; null for none. */
  mappedRole: Nullable(Type.String()),
});
const TeamRow = Type.Object({ teamId: Type.String(), team: Type.String(), organization: Type.String() });

/** Users as known to an identity provider, with the roles and teams that its groups give them. */
export function createProviderRepository(db: Queryable) {
  return {
    findIdentity: (issuer: string, subject: string) =>
      db.maybeOne(sql.rows(IdentityRow)`
        /* providers.findIdentity */
        select u.id as "userId", u.login, u.deactivated_at is null as "isActive"
        from user_identities i join users u on u.id = i.user_id where i.issuer = ${issuer} and i.subject = ${subject}`),

    /** Returns false if the identity is already taken. */
    insertIdentity: async (userId: string, issuer: string, subject: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* providers.insertIdentity */
        insert into user_identities (issuer, subject, user_id) values (${issuer}, ${subject}, ${userId}) on conflict do nothing`);
      return rowCount > 0;
    },

    removeIdentities: (userId: string) =>
      db.query(sql.nothing`
        /* providers.removeIdentities */ delete from user_identities where user_id = ${userId}`),

    noteSignIn: (issuer: string, subject: string) =>
      db.query(sql.nothing`
        /* providers.noteSignIn */
        update user_identities set last_sign_in_at = now() where issuer = ${issuer} and subject = ${subject}`),

    /** Returns the user's id; null if the login is taken, in whatever case. */
    insertUser: async (login: string, displayName: string, email: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* providers.insertUser */
        insert into users (login, display_name, email) select ${login}, ${displayName}, ${email}
        where not exists (select 1 from users where lower(login) = lower(${login}))
        on conflict (login) do nothing returning id`);
      return row?.id ?? null;
    },

    /** The login that made `insertUser` return null, in its own spelling. */
    getTakenLogin: async (login: string): Promise<string> => {
      const row = await db.one(sql.rows(LoginRow)`
        /* providers.getTakenLogin */
        select login from users where lower(login) = lower(${login}) order by login <> ${login}, created_at limit 1`);
      return row.login;
    },

    insertFlow: (hash: Buffer, kind: string, data: string, seconds: number) =>
      db.query(sql.nothing`
        /* providers.insertFlow */
        insert into sign_in_flows (flow_hash, kind, data, expires_at)
        values (${sql.binary(hash)}, ${kind}, ${data}, now() + make_interval(secs => ${seconds}))`),

    /** Only one caller gets a flow. */
    takeFlow: async (hash: Buffer, kind: string): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(DataRow)`
        /* providers.takeFlow */
        delete from sign_in_flows where flow_hash = ${sql.binary(hash)} and kind = ${kind} and expires_at > now() returning data`);
      return row?.data ?? null;
    },

    deleteEndedFlows: () =>
      db.query(sql.nothing`/* providers.deleteEndedFlows */ delete from sign_in_flows where expires_at < now()`),

    listMemberships: (userId: string) =>
      db.any(sql.rows(MembershipRow)`
        /* providers.listMemberships */
        select m.organization_id as "organizationId", o.name as organization, m.role, g.role as "mappedRole"
        from memberships m join organizations o on o.id = m.organization_id
        left join mapped_memberships g on g.organization_id = m.organization_id and g.user_id = m.user_id
        where m.user_id = ${userId}`),

    /** Organizations whose provider has suspended the membership (SCIM). */
    listSuspensions: async (userId: string): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* providers.listSuspensions */
        select o.name from scim_users s join organizations o on o.id = s.organization_id
        where s.user_id = ${userId} and s.suspended_role is not null`);
      return rows.map(({ name }) => name);
    },

    setMappedRole: (organizationId: string, userId: string, role: Role) =>
      db.query(sql.nothing`
        /* providers.setMappedRole */
        insert into mapped_memberships (organization_id, user_id, role) values (${organizationId}, ${userId}, ${role})
        on conflict (organization_id, user_id) do update set role = excluded.role`),

    /** For a role that was set by hand: groups no longer affect it. */
    forgetMappedRole: (organizationId: string, userId: string) =>
      db.query(sql.nothing`
        /* providers.forgetMappedRole */
        delete from mapped_memberships where organization_id = ${organizationId} and user_id = ${userId}`),

    /** Teams to which groups have added the user. */
    listMappedTeams: (userId: string) =>
      db.any(sql.rows(TeamRow)`
        /* providers.listMappedTeams */
        select e.id as "teamId", e.name as team, o.name as organization
        from mapped_team_members g join teams e on e.id = g.team_id join organizations o on o.id = e.organization_id
        where g.user_id = ${userId}`),

    isInTeam: (teamId: string, userId: string): Promise<boolean> =>
      db.exists(sql.rows(IdRow)`
        /* providers.isInTeam */ select team_id as id from team_members where team_id = ${teamId} and user_id = ${userId}`),

    /** Returns false if the user is already a member, by hand or by a group. */
    addMappedTeam: async (teamId: string, userId: string): Promise<boolean> => {
      const added = await db.maybeOne(sql.rows(IdRow)`
        /* providers.addTeamMember */
        insert into team_members (team_id, user_id) values (${teamId}, ${userId}) on conflict do nothing returning team_id as id`);
      if (!added) return false;
      await db.query(sql.nothing`
        /* providers.addMappedTeam */ insert into mapped_team_members (team_id, user_id) values (${teamId}, ${userId})`);
      return true;
    },
  };
}
export type ProviderRepository = ReturnType<typeof createProviderRepository>;
