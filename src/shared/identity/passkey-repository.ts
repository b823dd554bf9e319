import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

const PasskeyRow = Type.Object({
  credentialId: Type.String(),
  userId: Type.String(),
  login: Type.String(),
  isActive: Type.Boolean(),
  publicKey: Bytes,
  counter: Type.Integer(),
});
export type PasskeyRow = Row<typeof PasskeyRow>;

const ListedPasskeyRow = Type.Object({
  credentialId: Type.String(),
  name: Type.String(),
  createdAt: Timestamp,
  lastUsedAt: Nullable(Timestamp),
});
export type ListedPasskeyRow = Row<typeof ListedPasskeyRow>;

export function createPasskeyRepository(db: Queryable) {
  return {
    find: (credentialId: string) =>
      db.maybeOne(sql.rows(PasskeyRow)`
        /* passkeys.find */
        select p.credential_id as "credentialId", u.id as "userId", u.login, u.deactivated_at is null as "isActive",
          p.public_key as "publicKey", p.counter
        from passkeys p join users u on u.id = p.user_id where p.credential_id = ${credentialId}`),

    list: (userId: string) =>
      db.any(sql.rows(ListedPasskeyRow)`
        /* passkeys.list */
        select credential_id as "credentialId", name, created_at as "createdAt", last_used_at as "lastUsedAt"
        from passkeys where user_id = ${userId} order by created_at`),

    /** Returns false if a passkey with this id exists. */
    insert: async (passkey: {
      readonly credentialId: string;
      readonly userId: string;
      readonly publicKey: Buffer;
      readonly counter: number;
      readonly transports: readonly string[];
      readonly name: string;
    }): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passkeys.insert */
        insert into passkeys (credential_id, user_id, public_key, counter, transports, name)
        values (${passkey.credentialId}, ${passkey.userId}, ${sql.binary(passkey.publicKey)}, ${passkey.counter},
          ${passkey.transports.join(',')}, ${passkey.name})
        on conflict do nothing`);
      return rowCount > 0;
    },

    /** Returns false if the passkey is gone, or was used in the meantime. */
    use: async ({ counter, credentialId }: PasskeyRow, next: number): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passkeys.use */
        update passkeys set counter = ${next}, last_used_at = now() where credential_id = ${credentialId} and counter = ${counter}`);
      return rowCount > 0;
    },

    /** Returns whether the passkey existed. */
    remove: async (userId: string, credentialId: string): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passkeys.remove */ delete from passkeys where user_id = ${userId} and credential_id = ${credentialId}`);
      return rowCount > 0;
    },

    /** Returns the number of passkeys. */
    removeAll: async (userId: string): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* passkeys.removeAll */ delete from passkeys where user_id = ${userId}`);
      return rowCount;
    },
  };
}
export type PasskeyRepository = ReturnType<typeof createPasskeyRepository>;
