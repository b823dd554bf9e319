import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';
import { createSignInLinkRepository } from './sign-in-link-repository.ts';
import { SignInMethod } from './sign-in-method.ts';

const SessionRow = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  login: Type.String(),
  displayName: Type.String(),
  siteAdmin: Type.Boolean(),
  method: SignInMethod,
  /** Since the sign-in. */
  ageSeconds: Type.Number(),
  isStale: Type.Boolean(),
});
export type SessionRow = Row<typeof SessionRow>;

const ListedSessionRow = Type.Object({
  id: Type.String(),
  method: SignInMethod,
  createdAt: Timestamp,
  lastSeenAt: Timestamp,
  userAgent: Type.String(),
  address: Type.String(),
});
export type ListedSessionRow = Row<typeof ListedSessionRow>;

const maxSessions = 100;
const droppedAtOnce = 10;

const IdRow = Type.Object({ id: Type.String() });

export interface SessionLimits {
  /** The limit without any request. */
  readonly idleSeconds: number;
  /** Since the sign-in. */
  readonly maxSeconds: number;
}

export interface NewSession {
  readonly userId: string;
  readonly hash: Buffer;
  readonly method: SignInMethod;
  readonly userAgent: string;
  readonly address: string;
}

export function createSessionRepository(db: Queryable, limits: SessionLimits) {
  const isLive = sql.fragment`s.last_seen_at > now() - make_interval(secs => ${limits.idleSeconds})
    and s.created_at > now() - make_interval(secs => ${limits.maxSeconds})`;
  return {
    /** Only for an active user. Decides on every request; nothing is cached. */
    find: (hash: Buffer) =>
      db.maybeOne(sql.rows(SessionRow)`
        /* sessions.find */
        select s.id, u.id as "userId", u.login, u.display_name as "displayName", u.site_admin as "siteAdmin", s.method,
          extract(epoch from now() - s.created_at)::float8 as "ageSeconds", s.last_seen_at < now() - interval '1 minute' as "isStale"
        from sessions s join users u on u.id = s.user_id
        where s.session_hash = ${sql.binary(hash)} and u.deactivated_at is null and ${isLive}`),

    /** The permissions of the session's user are found by its token row. Extends one that ends before the session. */
    ensureToken: (id: string) =>
      db.query(sql.nothing`
        /* sessions.ensureToken */
        insert into api_tokens (id, user_id, token_hash, description, expires_at, is_session)
        select s.id, s.user_id, sha256(convert_to(gen_random_uuid()::text || gen_random_uuid(), 'UTF8')), 'browser',
          s.created_at + make_interval(secs => ${limits.maxSeconds}), true
        from sessions s where s.id = ${id}
        on conflict (id) do update set expires_at = excluded.expires_at where api_tokens.expires_at < excluded.expires_at`),

    /** Locks a live session until the end of the transaction, and keeps its user active. Returns false if it has ended. */
    hold: (id: string) =>
      db.exists(sql.rows(IdRow)`
        /* sessions.hold */
        select s.id from sessions s where s.id = ${id} and hold_user(s.user_id) and ${isLive} for share of s`),

    touch: (id: string) =>
      db.query(sql.nothing`
        /* sessions.touch */
        update sessions set last_seen_at = now()
        where id = (select id from sessions where id = ${id} for no key update skip locked)`),

    /**
     * Null if the user was deactivated meanwhile. Locks the user, so that a deactivation sees the session. If there are too many sessions,
     * ends the least recently used one.
     */
    insert: async ({ address, hash, method, userAgent, userId }: NewSession): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* sessions.insert */
        insert into sessions (user_id, session_hash, method, user_agent, address)
        select ${userId}, ${sql.binary(hash)}, ${method}, ${userAgent}, ${address} where hold_user(${userId}) returning id`);
      if (!row) return null;
      await db.query(sql.nothing`
        /* sessions.dropOldest */
        delete from sessions where id in (
          select o.id from (
            select id from sessions where user_id = ${userId} order by last_seen_at desc, id offset ${maxSessions} limit ${droppedAtOnce}) o
          join sessions s on s.id = o.id and s.id <> ${row.id} for update of s skip locked)`);
      return row.id;
    },

    /** The last used first. */
    list: (userId: string) =>
      db.any(sql.rows(ListedSessionRow)`
        /* sessions.list */
        select s.id, s.method, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.user_agent as "userAgent", s.address
        from sessions s where s.user_id = ${userId} and ${isLive} order by s.last_seen_at desc, s.id limit 100`),

    /** Returns whether the session existed. */
    remove: async (userId: string, id: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* sessions.remove */ delete from sessions where user_id = ${userId} and id = ${id}`);
      return rowCount > 0;
    },

    /** Also removes links that could begin a session. Returns the number of sessions. */
    removeAll: async (userId: string): Promise<number> => {
      await createSignInLinkRepository(db).removeAll(userId);
      const { rowCount } = await db.query(sql.nothing`
        /* sessions.removeAll */ delete from sessions where user_id = ${userId}`);
      return rowCount;
    },

    /** Also removes links that could begin a session. Returns the number of sessions. */
    removeOthers: async (userId: string, kept: string): Promise<number> => {
      await createSignInLinkRepository(db).removeAll(userId);
      const { rowCount } = await db.query(sql.nothing`
        /* sessions.removeOthers */ delete from sessions where user_id = ${userId} and id <> ${kept}`);
      return rowCount;
    },

    removeEveryones: () => db.query(sql.nothing`/* sessions.removeEveryones */ delete from sessions`),

    deleteEnded: () => db.query(sql.nothing`/* sessions.deleteEnded */ delete from sessions s where not (${isLive})`),

    /** A day after the latest possible end of the sessions. */
    deleteExpiredTokens: () =>
      db.query(sql.nothing`
        /* sessions.deleteExpiredTokens */
        delete from api_tokens where is_session and expires_at < now() - interval '1 day'`),
  };
}
export type SessionRepository = ReturnType<typeof createSessionRepository>;
