import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes } from '../platform/schema/standard-schema.ts';

const EncryptionKeyRow = Type.Object({
  id: Type.String(),
  stackId: Type.String(),
  masterKeyId: Type.String(),
  wrappedKey: Bytes,
});
export type EncryptionKeyRow = Row<typeof EncryptionKeyRow>;

export type EncryptionKeyRepository = ReturnType<typeof createEncryptionKeyRepository>;

/** Wrapped data keys, one per stack. */
export function createEncryptionKeyRepository(db: Queryable) {
  const columns = sql.fragment`id, stack_id as "stackId", master_key_id as "masterKeyId", wrapped_key as "wrappedKey"`;
  return {
    findByStack: (stackId: string) =>
      db.maybeOne(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.findByStack */ select ${columns} from encryption_keys where stack_id = ${stackId}`),

    findById: (id: string) =>
      db.maybeOne(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.findById */ select ${columns} from encryption_keys where id = ${id}`),

    /** Stores the key unless the stack has one already; returns the one that counts. */
    insertOrGet: async (key: {
      stackId: string;
      masterKeyId: string;
      wrappedKey: Buffer;
    }): Promise<EncryptionKeyRow> => {
      await db.query(sql.nothing`
        /* encryptionKeys.insert */
        insert into encryption_keys (stack_id, master_key_id, wrapped_key)
        values (${key.stackId}, ${key.masterKeyId}, ${sql.binary(key.wrappedKey)})
        on conflict on constraint encryption_keys_stack_key do nothing`);
      return db.one(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.getByStack */ select ${columns} from encryption_keys where stack_id = ${key.stackId}`);
    },

    /** Keys that another master key than this one wraps, in order of id. */
    listWrappedByOthers: (masterKeyId: string, after: string | null, limit: number) =>
      db.any(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.listWrappedByOthers */
        select ${columns} from encryption_keys
        where master_key_id <> ${masterKeyId} and (${after}::uuid is null or id > ${after}::uuid) order by id limit ${limit}`),

    /** Replaces the wrapping of a key as it was read; false when it changed or went meanwhile. */
    rewrap: async (read: EncryptionKeyRow, wrapped: { masterKeyId: string; wrappedKey: Buffer }): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(Type.Object({ id: Type.String() }))`
        /* encryptionKeys.rewrap */
        update encryption_keys set master_key_id = ${wrapped.masterKeyId}, wrapped_key = ${sql.binary(wrapped.wrappedKey)}
        where id = ${read.id} and wrapped_key = ${sql.binary(read.wrappedKey)} returning id`);
      return row !== null;
    },

    /** Stacks that have, or once had, this name in the organization. */
    listStackIdsByName: async (organizationId: string, project: string, stack: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(Type.Object({ id: Type.String() }))`
        /* encryptionKeys.listStackIdsByName */
        select f.stack_id as id from former_stack_names f
        where f.organization_id = ${organizationId} and f.project_name = ${project} and f.stack_name = ${stack}
        union
        select s.id from stacks s join projects p on p.id = s.project_id
        where p.organization_id = ${organizationId} and p.name = ${project} and s.name = ${stack}`);
      return rows.map((row) => row.id);
    },
  };
}
