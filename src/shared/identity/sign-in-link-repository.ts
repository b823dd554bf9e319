import { Type } from 'typebox';
import { hashToken, mintToken, tokenForm } from '../platform/crypto/secret-token.ts';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

const prefix = 'hfl-';

const UserRow = Type.Object({ userId: Type.String(), login: Type.String() });
type LinkUserRow = Row<typeof UserRow>;
const ExpiryRow = Type.Object({ expiresAt: Timestamp });

/** Each link signs in once. */
export function createSignInLinkRepository(db: Queryable) {
  return {
    /** Returns the secret, which is not stored. */
    insert: async (userId: string, seconds: number): Promise<{ secret: string; expiresAt: Date }> => {
      const { token, hash } = mintToken(prefix);
      const { expiresAt } = await db.one(sql.rows(ExpiryRow)`
        /* signInLinks.insert */
        insert into sign_in_links (user_id, link_hash, expires_at)
        values (${userId}, ${sql.binary(hash)}, now() + make_interval(secs => ${seconds}))
        returning expires_at as "expiresAt"`);
      return { secret: token, expiresAt };
    },

    /** Null if the link is unknown, expired or used, or its user is deactivated. */
    take: async (secret: string): Promise<LinkUserRow | null> => {
      if (tokenForm(secret, prefix) !== 'whole') return null;
      return db.maybeOne(sql.rows(UserRow)`
        /* signInLinks.take */
        delete from sign_in_links l using users u
        where l.link_hash = ${sql.binary(hashToken(secret))} and l.expires_at > now()
          and u.id = l.user_id and u.deactivated_at is null
        returning u.id as "userId", u.login`);
    },

    removeAll: (userId: string) =>
      db.query(sql.nothing`/* signInLinks.removeAll */ delete from sign_in_links where user_id = ${userId}`),

    removeEveryones: () => db.query(sql.nothing`/* signInLinks.removeEveryones */ delete from sign_in_links`),

    deleteExpired: () =>
      db.query(sql.nothing`/* signInLinks.deleteExpired */ delete from sign_in_links where expires_at < now()`),
  };
}
