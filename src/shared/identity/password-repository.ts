import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';

const PasswordRow = Type.Object({ userId: Type.String(), login: Type.String(), passwordHash: Type.String() });
export type PasswordRow = Row<typeof PasswordRow>;

const IdRow = Type.Object({ id: Type.String() });

export function createPasswordRepository(db: Queryable) {
  return {
    /** For an active user. */
    find: (login: string) =>
      db.maybeOne(sql.rows(PasswordRow)`
        /* passwords.find */
        select u.id as "userId", u.login, p.password_hash as "passwordHash"
        from users u join user_passwords p on p.user_id = u.id where u.login = ${login} and u.deactivated_at is null`),

    /** Locks the password until the end of the transaction, so that a change waits. Returns false if the user has another one. */
    hold: (userId: string, passwordHash: string) =>
      db.exists(sql.rows(IdRow)`
        /* passwords.hold */
        select user_id as id from user_passwords where user_id = ${userId} and password_hash = ${passwordHash} for share`),

    /** A trigger ends all sessions that began with an earlier password. */
    set: (userId: string, passwordHash: string) =>
      db.query(sql.nothing`
        /* passwords.set */
        insert into user_passwords (user_id, password_hash) values (${userId}, ${passwordHash})
        on conflict (user_id) do update set password_hash = excluded.password_hash, changed_at = now()`),

    /** Returns false if the user has a password already. */
    insert: async (userId: string, passwordHash: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passwords.insert */
        insert into user_passwords (user_id, password_hash) values (${userId}, ${passwordHash})
        on conflict (user_id) do nothing`);
      return rowCount > 0;
    },

    /** Returns whether there was a password. */
    remove: async (userId: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passwords.remove */ delete from user_passwords where user_id = ${userId}`);
      return rowCount > 0;
    },
  };
}
export type PasswordRepository = ReturnType<typeof createPasswordRepository>;
