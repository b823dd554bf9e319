import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import type { WrappedDataKey } from './key-ring.ts';

const EncryptionKeyRow = Type.Object({
  id: Type.String(),
  /** Null for a key of documents in the blob store. */
  stackId: Nullable(Type.String()),
  version: Type.Integer(),
  masterKeyId: Type.String(),
  wrappedKey: Bytes,
  ageSeconds: Type.Number(),
});
export type EncryptionKeyRow = Row<typeof EncryptionKeyRow>;

const IdRow = Type.Object({ id: Type.String() });
const SaltRow = Type.Object({ salt: Bytes });
const OwnerRow = Type.Object({
  id: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
});

export type KeyScope =
  | { readonly kind: 'stack'; readonly stackId: string }
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'all-stacks' };

export type EncryptionKeyRepository = ReturnType<typeof createEncryptionKeyRepository>;

/** For each stack, and for documents, the key with the highest version encrypts. */
export function createEncryptionKeyRepository(db: Queryable) {
  const columns = sql.fragment`
    k.id, k.stack_id as "stackId", k.version, k.master_key_id as "masterKeyId", k.wrapped_key as "wrappedKey",
    extract(epoch from now() - k.created_at)::float8 as "ageSeconds"`;
  // A promoted standby may not have received a master key that this process still has in memory.
  const isStored = ({ masterKeyId, storedCanary }: WrappedDataKey) =>
    storedCanary === null
      ? sql.fragment`true`
      : sql.fragment`exists (
          select 1 from master_keys where master_keys.id = ${masterKeyId} and canary = ${sql.binary(storedCanary)})`;
  // A deleted stack that can be restored keeps its keys. The transaction that makes it unrestorable deletes them under the lock of its row.
  const hasFuture = sql.fragment`(s.deleted_at is null or s.restorable_until is not null)`;
  const inScope = (scope: KeyScope) => {
    if (scope.kind === 'stack') return sql.fragment`s.id = ${scope.stackId}::uuid`;
    if (scope.kind === 'organization') return sql.fragment`p.organization_id = ${scope.organizationId}::uuid`;
    return sql.fragment`true`;
  };

  return {
    /** `stackId` null stands for documents. */
    findCurrent: (stackId: string | null) =>
      stackId === null
        ? db.maybeOne(sql.rows(EncryptionKeyRow)`
            /* encryptionKeys.findCurrentOfDocuments */
            select ${columns} from encryption_keys k where k.stack_id is null order by k.version desc limit 1`)
        : db.maybeOne(sql.prepared('encryption_keys_find_current', EncryptionKeyRow)`
            /* encryptionKeys.findCurrent */
            select ${columns} from encryption_keys k where k.stack_id = ${stackId}::uuid order by k.version desc limit 1`),

    findById: (id: string) =>
      db.maybeOne(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.findById */ select ${columns} from encryption_keys k where k.id = ${id}`),

    /** Returns false if another process was first, the stack was deleted for good, or the master key is not stored. */
    insert: async (key: { stackId: string | null; version: number; wrapped: WrappedDataKey }): Promise<boolean> => {
      const { masterKeyId, wrappedKey } = key.wrapped;
      const values = sql.fragment`${key.version}::integer, ${masterKeyId}::text, ${sql.binary(wrappedKey)}::bytea`;
      const source =
        key.stackId === null
          ? sql.fragment`select null::uuid, ${values} where ${isStored(key.wrapped)}`
          : sql.fragment`select s.id, ${values} from stacks s
              where s.id = ${key.stackId}::uuid and ${hasFuture} and ${isStored(key.wrapped)} for key share of s`;
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* encryptionKeys.insert */
        insert into encryption_keys (stack_id, version, master_key_id, wrapped_key) ${source}
        on conflict on constraint encryption_keys_stack_key do nothing returning id`);
      return row !== null;
    },

    /** True if the master key need not be stored. */
    isMasterKeyStored: (wrapped: WrappedDataKey) =>
      db.exists(sql.rows(Type.Object({ found: Type.Integer() }))`
        /* encryptionKeys.isMasterKeyStored */ select 1 as found where ${isStored(wrapped)}`),

    /** Random bytes, which never change. They are not secret: each copy of the database has them. */
    derivationSalt: async (): Promise<Buffer> => {
      const { salt } = await db.one(sql.rows(SaltRow)`
        /* encryptionKeys.derivationSalt */ select url_key as salt from installation`);
      return salt;
    },

    /** Documents are, or were, encrypted. */
    hasDocumentKeys: () =>
      db.exists(
        sql.rows(IdRow)`/* encryptionKeys.hasDocumentKeys */ select id from encryption_keys where stack_id is null`,
      ),

    /** All versions, by id. */
    listAfter: (after: string | null, limit: number) =>
      db.any(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.listAfter */
        select ${columns} from encryption_keys k
        where ${after}::uuid is null or k.id > ${after}::uuid order by k.id limit ${limit}`),

    /** Ordered by id. */
    listWrappedByOthers: (masterKeyId: string, after: string | null, limit: number) =>
      db.any(sql.rows(EncryptionKeyRow)`
        /* encryptionKeys.listWrappedByOthers */
        select ${columns} from encryption_keys k
        where k.master_key_id <> ${masterKeyId} and (${after}::uuid is null or k.id > ${after}::uuid) order by k.id limit ${limit}`),

    /** Returns false if the key was changed or deleted since the read, or the master key is not stored. */
    rewrap: async (read: EncryptionKeyRow, wrapped: WrappedDataKey): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* encryptionKeys.rewrap */
        update encryption_keys set master_key_id = ${wrapped.masterKeyId}, wrapped_key = ${sql.binary(wrapped.wrappedKey)}
        where id = ${read.id} and wrapped_key = ${sql.binary(read.wrappedKey)} and ${isStored(wrapped)} returning id`);
      return row !== null;
    },

    /** Ordered by id. Includes deleted stacks that can be restored. */
    listStacksWithKeys: async (scope: KeyScope, after: string | null, limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* encryptionKeys.listStacksWithKeys */
        select s.id from stacks s join projects p on p.id = s.project_id
        where ${hasFuture} and ${inScope(scope)} and (${after}::uuid is null or s.id > ${after}::uuid)
          and exists (select 1 from encryption_keys k where k.stack_id = s.id)
        order by s.id limit ${limit}`);
      return rows.map((row) => row.id);
    },

    /** Without deleted stacks. */
    listStackNames: (stackIds: readonly string[]) =>
      db.any(sql.rows(OwnerRow)`
        /* encryptionKeys.listStackNames */
        select s.id, o.name as organization, p.name as project, s.name as stack
        from stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
        where s.id = any (${sql.array([...stackIds], 'uuid')}) and s.deleted_at is null`),

    /** Stacks that have, or had, this name, without deleted ones. */
    listStackIdsByName: async (organizationId: string, project: string, stack: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* encryptionKeys.listStackIdsByName */
        select f.stack_id as id from former_stack_names f join stacks s on s.id = f.stack_id and s.deleted_at is null
        where f.organization_id = ${organizationId} and f.project_name = ${project} and f.stack_name = ${stack}
        union
        select s.id from stacks s join projects p on p.id = s.project_id
        where p.organization_id = ${organizationId} and p.name = ${project} and s.name = ${stack} and s.deleted_at is null`);
      return rows.map((row) => row.id);
    },
  };
}
