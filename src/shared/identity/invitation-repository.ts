import { Type } from 'typebox';
import { Role } from '../access/roles.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

export const invitationDays = 14;
export const maxInvitations = 100;

const InvitationRow = Type.Object({
  organizationId: Type.String(),
  organization: Type.String(),
  login: Type.String(),
  role: Role,
  /** The login of the admin, or the name of the token. */
  invitedBy: Type.String(),
  createdAt: Timestamp,
  expiresAt: Timestamp,
});
export type InvitationRow = Row<typeof InvitationRow>;

const CountRow = Type.Object({ count: Type.Integer() });

/** All operations ignore invitations that have ended. */
export function createInvitationRepository(db: Queryable) {
  const columnsOf = (rows: ReturnType<typeof sql.fragment>) => sql.fragment`
    i.organization_id as "organizationId", o.name as organization, i.login, i.role, i.invited_by_name as "invitedBy",
    i.created_at as "createdAt", i.expires_at as "expiresAt" from ${rows} i join organizations o on o.id = i.organization_id`;
  const columns = columnsOf(sql.fragment`invitations`);
  const taken = columnsOf(sql.fragment`removed`);
  const isOpen = sql.fragment`i.expires_at > now()`;
  return {
    /** Ordered by login. */
    listOfOrganization: (organizationId: string) =>
      db.any(sql.rows(InvitationRow)`
        /* invitations.listOfOrganization */
        select ${columns} where i.organization_id = ${organizationId} and ${isOpen} order by i.login limit ${maxInvitations}`),

    /** Newest first. */
    listOfUser: (userId: string) =>
      db.any(sql.rows(InvitationRow)`
        /* invitations.listOfUser */
        select ${columns} where i.user_id = ${userId} and ${isOpen} order by i.created_at desc, o.name limit ${maxInvitations}`),

    countOthers: async (organizationId: string, login: string): Promise<number> => {
      const row = await db.one(sql.rows(CountRow)`
        /* invitations.countOthers */
        select count(*)::int as count from invitations i where i.organization_id = ${organizationId} and i.login <> ${login} and ${isOpen}`);
      return row.count;
    },

    /** Replaces an invitation for the same login and restarts its period. */
    put: (invitation: {
      readonly organizationId: string;
      readonly login: string;
      readonly userId: string | null;
      readonly role: Role;
      readonly invitedBy: string | null;
      readonly invitedByName: string;
    }) =>
      db.query(sql.nothing`
        /* invitations.put */
        insert into invitations (organization_id, login, user_id, role, invited_by, invited_by_name, expires_at)
        values (${invitation.organizationId}, ${invitation.login}, ${invitation.userId}, ${invitation.role}, ${invitation.invitedBy},
          ${invitation.invitedByName}, now() + make_interval(days => ${invitationDays}))
        on conflict (organization_id, login) do update set user_id = excluded.user_id, role = excluded.role,
          invited_by = excluded.invited_by, invited_by_name = excluded.invited_by_name, created_at = now(), expires_at = excluded.expires_at`),

    /** Returns the removed invitation. */
    takeOfLogin: (organizationId: string, login: string) =>
      db.maybeOne(sql.rows(InvitationRow)`
        /* invitations.takeOfLogin */
        with removed as (delete from invitations i where i.organization_id = ${organizationId} and i.login = ${login} and ${isOpen} returning *)
        select ${taken}`),

    /** Returns the removed invitation. */
    takeOfUser: (organization: string, userId: string) =>
      db.maybeOne(sql.rows(InvitationRow)`
        /* invitations.takeOfUser */
        with removed as (
          delete from invitations i using organizations n
          where n.name = ${organization} and i.organization_id = n.id and i.user_id = ${userId} and ${isOpen} returning i.*)
        select ${taken}`),

    deleteEnded: () =>
      db.query(sql.nothing`/* invitations.deleteEnded */ delete from invitations i where not (${isOpen})`),
  };
}
