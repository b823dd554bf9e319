import { Type } from 'typebox';
import type { Role } from '../access/roles.ts';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';

const IdRow = Type.Object({ id: Type.String() });
const LoginRow = Type.Object({ login: Type.String() });
const TokenRow = Type.Object({ id: Type.String(), login: Type.String() });

/** A bootstrap file removes entries that it does not list: in these organizations, or everything that a file has added. */
export interface ManagedScope {
  readonly managedIds: readonly string[];
  readonly everywhere: boolean;
}

/** All statements run in one transaction. Rows from the file are marked as listed. */
export function createBootstrapRepository(tx: Queryable) {
  const logins = async (rows: Promise<readonly { login: string }[]>): Promise<string[]> =>
    (await rows).map(({ login }) => login);
  const uuids = (ids: readonly string[]) => sql.array(ids, 'uuid');
  const hashes = (values: readonly Buffer[]) => sql.array(values, 'bytea');

  return {
    /** Takes the lock of `lockPeople`. */
    lock: () => lockPeople(tx),

    findRevision: async (): Promise<number | null> => {
      const row = await tx.one(sql.rows(Type.Object({ revision: Nullable(Type.Integer()) }))`
        /* bootstrap.findRevision */ select bootstrap_revision as revision from installation`);
      return row.revision;
    },

    /** Covers everything that a file may change, so equal digests before and after mean that the file changed nothing. */
    readDigest: async (): Promise<string> => {
      const row = await tx.one(sql.rows(Type.Object({ digest: Type.String() }))`
        /* bootstrap.readDigest */ select md5(concat_ws('|',
          (select string_agg(concat_ws(',', id, name), ';' order by id) from organizations),
          (select string_agg(concat_ws(',', id, login, site_admin), ';' order by id) from users),
          (select string_agg(concat_ws(',', organization_id, user_id, role), ';' order by organization_id, user_id) from memberships),
          (select string_agg(concat_ws(',', id, revoked_at), ';' order by id) from api_tokens where not is_session))) as digest`);
      return row.digest;
    },

    setRevision: (revision: number) =>
      tx.query(sql.nothing`
        /* bootstrap.setRevision */
        update installation set bootstrap_revision = ${revision}::bigint where bootstrap_revision is distinct from ${revision}::bigint`),

    setSiteAdmin: (userId: string, siteAdmin: boolean, organizationId: string) =>
      tx.query(sql.nothing`
        /* bootstrap.setSiteAdmin */
        update users set site_admin = ${siteAdmin}, site_admin_listed_in = ${siteAdmin ? organizationId : null}::uuid
        where id = ${userId} and (site_admin <> ${siteAdmin} or ${siteAdmin} <> (site_admin_listed_in is not null))`),

    /** Returns the logins of former site admins. */
    withdrawSiteAdmins: ({ managedIds, everywhere }: ManagedScope, listedIds: readonly string[]) =>
      logins(
        tx.any(sql.rows(LoginRow)`
          /* bootstrap.withdrawSiteAdmins */
          update users set site_admin = false, site_admin_listed_in = null
          where site_admin and id <> all (${uuids(listedIds)})
            and (${everywhere} or site_admin_listed_in = any (${uuids(managedIds)}))
          returning login`),
      ),

    /** The organization's provider has suspended or removed these users (SCIM). */
    listKeptOut: async (organizationId: string, userIds: readonly string[]): Promise<readonly string[]> => {
      const rows = await tx.any(sql.rows(IdRow)`
        /* bootstrap.listKeptOut */
        select user_id as id from scim_users
        where organization_id = ${organizationId} and user_id = any (${uuids(userIds)}) and suspended_role is not null
        union select user_id from removed_members where organization_id = ${organizationId} and user_id = any (${uuids(userIds)})`);
      return rows.map(({ id }) => id);
    },

    setMembership: (organizationId: string, userId: string, role: Role) =>
      tx.query(sql.nothing`
        /* bootstrap.setMembership */
        insert into memberships (organization_id, user_id, role, is_listed) values (${organizationId}, ${userId}, ${role}, true)
        on conflict (organization_id, user_id) do update set role = excluded.role, is_listed = true
        where memberships.role <> excluded.role or not memberships.is_listed`),

    /** Removes members however they were added. Returns their logins. */
    removeOtherMembers: (organizationId: string, userIds: readonly string[]) =>
      logins(
        tx.any(sql.rows(LoginRow)`
          /* bootstrap.removeOtherMembers */
          delete from memberships m using users u
          where u.id = m.user_id and m.organization_id = ${organizationId} and m.user_id <> all (${uuids(userIds)})
          returning u.login`),
      ),

    /** Removes only memberships that a file has added. */
    removeMembersElsewhere: (organizationIds: readonly string[]) =>
      tx.any(sql.rows(Type.Object({ login: Type.String(), organization: Type.String() }))`
        /* bootstrap.removeMembersElsewhere */
        delete from memberships m using users u, organizations o
        where u.id = m.user_id and o.id = m.organization_id and m.is_listed and m.organization_id <> all (${uuids(organizationIds)})
        returning u.login, o.name as organization`),

    /** Reactivates a token that was withdrawn because a file no longer listed it, but not one that an operator has revoked. */
    listToken: async (token: {
      userId: string;
      organizationId: string;
      hash: Buffer;
    }): Promise<'live' | 'foreign' | 'deactivated' | 'revoked'> => {
      const [row] = await tx.any(sql.rows(
        Type.Object({
          isOwn: Type.Boolean(),
          isRevoked: Type.Boolean(),
          isWithdrawn: Type.Boolean(),
          isCurrent: Type.Boolean(),
        }),
      )`
        /* bootstrap.findToken */
        select coalesce(user_id = ${token.userId}, false) as "isOwn", revoked_at is not null as "isRevoked", is_withdrawn as "isWithdrawn",
          listed_in is not distinct from ${token.organizationId}::uuid as "isCurrent"
        from api_tokens where token_hash = any (${hashes([token.hash])})`);
      if (row && !row.isOwn) return 'foreign';
      if (row?.isRevoked && !row.isWithdrawn) return 'revoked';
      const isNew = !row || row.isWithdrawn;
      if (isNew) {
        const active = await tx.maybeOne(sql.rows(LoginRow)`
          /* bootstrap.findActiveUser */ select login from users where id = ${token.userId} and deactivated_at is null`);
        if (!active) return 'deactivated';
      }
      if (isNew || !row?.isCurrent)
        await tx.query(sql.nothing`
          /* bootstrap.listToken */
          insert into api_tokens (user_id, token_hash, description, listed_in)
          values (${token.userId}, ${sql.binary(token.hash)}, 'bootstrap', ${token.organizationId})
          on conflict (token_hash) do update set revoked_at = null, is_withdrawn = false, listed_in = excluded.listed_in`);
      return 'live';
    },

    /** Withdraws only tokens that a file has added. */
    withdrawTokens: ({ managedIds, everywhere }: ManagedScope, listed: readonly Buffer[]) =>
      tx.any(sql.rows(TokenRow)`
        /* bootstrap.withdrawTokens */
        update api_tokens t set revoked_at = now(), is_withdrawn = true from users u
        where u.id = t.user_id and t.revoked_at is null and t.token_hash <> all (${hashes(listed)})
          and case when ${everywhere} then t.listed_in is not null else t.listed_in = any (${uuids(managedIds)}) end
        returning t.id, u.login`),

    /** Valid tokens from earlier files whose owners have another token in this file. */
    listReplacedTokens: (listed: readonly Buffer[]) =>
      tx.any(sql.rows(TokenRow)`
        /* bootstrap.listReplacedTokens */
        select t.id, u.login from api_tokens t join users u on u.id = t.user_id
        where t.revoked_at is null and t.listed_in is not null and t.token_hash <> all (${hashes(listed)})
          and exists (
            select 1 from api_tokens n where n.user_id = t.user_id and n.listed_in = t.listed_in and n.token_hash = any (${hashes(listed)}))
        order by u.login, t.created_at`),

    listWithoutAdmin: async (organizationIds: readonly string[]): Promise<string[]> => {
      const rows = await tx.any(sql.rows(Type.Object({ name: Type.String() }))`
        /* bootstrap.listWithoutAdmin */
        select o.name from organizations o where o.id = any (${uuids(organizationIds)}) and not exists (
          select 1 from memberships m join users u on u.id = m.user_id
          where m.organization_id = o.id and m.role = 'admin' and u.deactivated_at is null)
        order by o.name`);
      return rows.map(({ name }) => name);
    },
  };
}

/**
 * How long a holder of the lock on people waits for each further lock: longer than transactions that share the locks of an organization,
 * and shorter than changes wait for the lock on people.
 */
export const heldWaitMs = 4_000;

/**
 * Allows one transaction at a time to change users, memberships and tokens. The transaction waits at most 4 s for each further lock, then
 * fails and is repeated (`LockRepeats`), because changes in all organizations wait meanwhile.
 */
export async function lockPeople(tx: Queryable): Promise<void> {
  await tx.query(sql.nothing`
    /* people.lock */ select set_config('lock_timeout', '0', true), pg_advisory_xact_lock(hashtextextended('holdfast people', 0)),
      set_config('lock_timeout', ${String(heldWaitMs)}, true)`);
}
