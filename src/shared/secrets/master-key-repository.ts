import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';

const MasterKeyRow = Type.Object({
  id: Type.String(),
  /** Wrapped by the KMS; null for a key in the setting. */
  wrappedKey: Nullable(Bytes),
  wrappedBy: Nullable(Type.String()),
  /** A known text, encrypted with the key. */
  canary: Bytes,
});
export type MasterKeyRow = Row<typeof MasterKeyRow>;

const IdRow = Type.Object({ id: Type.String() });
/** `owner` is the context; null for documents. */
const UseRow = Type.Object({ owner: Nullable(Type.String()), encrypted: Bytes });
const NewestRow = Type.Object({ masterKeyId: Type.String(), ...UseRow.properties });

export type MasterKeyRepository = ReturnType<typeof createMasterKeyRepository>;

/** Master keys by their ids in HOLDFAST_MASTER_KEYS. Rows are never deleted, because backups may need them. */
export function createMasterKeyRepository(db: Queryable) {
  /** Data keys, and the secrets of webhooks (`secretOwner`). */
  const uses = sql.fragment`
    select master_key_id, stack_id::text as owner, wrapped_key as encrypted, created_at as since from encryption_keys
    union all
    select master_key_id, 'webhook ' || id, secret, modified_at from webhooks where secret is not null`;
  return {
    find: (id: string) =>
      db.maybeOne(sql.rows(MasterKeyRow)`
        /* masterKeys.find */
        select id, wrapped_key as "wrappedKey", wrapped_by as "wrappedBy", canary from master_keys where id = ${id}`),

    /** Does nothing if a key with this id exists. */
    insert: async ({ canary, id, wrappedBy, wrappedKey }: MasterKeyRow): Promise<void> => {
      const wrapped = wrappedKey === null ? sql.fragment`null` : sql.binary(wrappedKey);
      await db.query(sql.nothing`
        /* masterKeys.insert */
        insert into master_keys (id, wrapped_key, wrapped_by, canary)
        values (${id}, ${wrapped}, ${wrappedBy}, ${sql.binary(canary)}) on conflict (id) do nothing`);
    },

    /** Returns false if the wrapping was replaced since the read. */
    rewrap: async (
      id: string,
      read: Buffer,
      next: { readonly wrappedKey: Buffer; readonly wrappedBy: string },
    ): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* masterKeys.rewrap */
        update master_keys set wrapped_key = ${sql.binary(next.wrappedKey)}, wrapped_by = ${next.wrappedBy}
        where id = ${id} and wrapped_key = ${sql.binary(read)} returning id`);
      return row !== null;
    },

    /** Some of the data that the key encrypts. Reads whole tables if there is none. */
    listUses: (id: string, limit: number) =>
      db.any(sql.rows(UseRow)`
        /* masterKeys.listUses */
        select owner, encrypted from (${uses}) u where master_key_id = ${id} limit ${limit}`),

    /** No key has been recorded or used. */
    hasNone: async (): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* masterKeys.hasNone */
        select id from (select id from master_keys union all select master_key_id from (${uses}) u) k limit 1`);
      return row === null;
    },

    /** Reads whole tables. */
    listNewestUses: (limit: number) =>
      db.any(sql.rows(NewestRow)`
        /* masterKeys.listNewestUses */
        select master_key_id as "masterKeyId", owner, encrypted from (${uses}) u order by since desc limit ${limit}`),

    /** Reads whole tables. */
    listUsedIds: async (): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* masterKeys.listUsedIds */ select distinct master_key_id as id from (${uses}) u order by 1`);
      return rows.map(({ id }) => id);
    },
  };
}
