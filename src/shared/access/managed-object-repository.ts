import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Timestamp } from '../platform/schema/standard-schema.ts';

const Key = { kind: Type.String(), name: Type.String() };
const ManagedObjectRow = Type.Object({
  ...Key,
  object: Type.String(),
  /** A JSON object of string values. */
  labels: Type.String(),
  secretDigest: Type.Union([Type.String(), Type.Null()]),
  appliedAt: Timestamp,
  appliedBy: Type.String(),
});
export type ManagedObjectRow = Row<typeof ManagedObjectRow>;
export type ManagedObjectKey = Pick<ManagedObjectRow, 'kind' | 'name'>;

const DeclarationRow = Type.Pick(ManagedObjectRow, ['name', 'labels', 'appliedAt', 'appliedBy']);

const CountRow = Type.Object({ count: Type.Integer() });

/** A configuration under version control declares these objects. */
export function createManagedObjectRepository(db: Queryable) {
  return {
    /** Ordered by kind and name. */
    listPage: (organizationId: string, after: ManagedObjectKey | null, limit: number) =>
      db.any(sql.rows(ManagedObjectRow)`
        /* managedObjects.listPage */
        select kind, name, object, labels::text as labels, secret_digest as "secretDigest", applied_at as "appliedAt",
          applied_by as "appliedBy"
        from managed_objects
        where organization_id = ${organizationId}
          and ${after === null ? sql.fragment`true` : sql.fragment`(kind, name) > (${after.kind}, ${after.name})`}
        order by kind, name limit ${limit}`),

    listOfKind: async (organizationId: string, kind: string, limit: number): Promise<readonly string[]> => {
      const rows = await db.any(sql.rows(Type.Object({ object: Type.String() }))`
        /* managedObjects.listOfKind */
        select object from managed_objects where organization_id = ${organizationId} and kind = ${kind} order by object limit ${limit}`);
      return rows.map(({ object }) => object);
    },

    /** The last declaration; null if no configuration declares the object. */
    findDeclaration: (organizationId: string, kind: string, object: string) =>
      db.maybeOne(sql.rows(DeclarationRow)`
        /* managedObjects.findDeclaration */
        select name, labels::text as labels, applied_at as "appliedAt", applied_by as "appliedBy"
        from managed_objects where organization_id = ${organizationId} and kind = ${kind} and object = ${object}
        order by applied_at desc, name limit 1`),

    /** Counts up to `limit`. */
    count: async (organizationId: string, limit: number): Promise<number> => {
      const { count } = await db.one(sql.rows(CountRow)`
        /* managedObjects.count */
        select count(*)::int as count
        from (select 1 from managed_objects where organization_id = ${organizationId} limit ${limit}) counted`);
      return count;
    },

    /** Replaces existing objects. `objects` contains no duplicates. */
    set: async (
      organizationId: string,
      appliedBy: string,
      objects: readonly Omit<ManagedObjectRow, 'appliedAt' | 'appliedBy'>[],
    ): Promise<void> => {
      const column = (name: keyof (typeof objects)[number]) =>
        sql.array(
          objects.map((each) => each[name]),
          'text',
        );
      await db.query(sql.nothing`
        /* managedObjects.set */
        insert into managed_objects (organization_id, kind, name, object, labels, secret_digest, applied_by)
        select ${organizationId}, kind, name, object, labels::jsonb, digest, ${appliedBy}
        from unnest(${column('kind')}, ${column('name')}, ${column('object')}, ${column('labels')}, ${column('secretDigest')})
          as given (kind, name, object, labels, digest)
        on conflict (organization_id, kind, name) do update set object = excluded.object, labels = excluded.labels,
          secret_digest = excluded.secret_digest, applied_at = now(), applied_by = excluded.applied_by`);
    },

    remove: async (organizationId: string, keys: readonly ManagedObjectKey[]): Promise<void> => {
      const column = (name: keyof ManagedObjectKey) =>
        sql.array(
          keys.map((each) => each[name]),
          'text',
        );
      await db.query(sql.nothing`
        /* managedObjects.remove */
        delete from managed_objects m using unnest(${column('kind')}, ${column('name')}) as given (kind, name)
        where m.organization_id = ${organizationId} and m.kind = given.kind and m.name = given.name`);
    },
  };
}
