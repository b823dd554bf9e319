import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';

const RestorableStackRow = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  projectId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  stackVersion: Type.Integer(),
  resourceCount: Type.Integer(),
  checkpointId: Nullable(Type.String()),
  deletedAt: Timestamp,
  /** Microseconds since the epoch. A `Date` is too coarse for the continuation of a list. */
  deletedMicros: Type.String(),
  deletedBy: Type.String(),
  /** Null if it can no longer be restored. */
  restorableUntil: Nullable(Timestamp),
  isRestorable: Type.Boolean(),
  /** The stack is under a legal hold. */
  isHeld: Type.Boolean(),
  /** Another stack now has its name. */
  isNameTaken: Type.Boolean(),
});
export type RestorableStackRow = Row<typeof RestorableStackRow>;

const FormerRow = Type.Object({
  id: Type.String(),
  /** JSON text. */
  tags: Type.String(),
});
const FreeRow = Type.Object({ name: Type.String() });

/** The last deleted comes first. */
export interface DeletedStackPosition {
  readonly deletedMicros: string;
  readonly id: string;
}

/** Deleted stacks that still have their data. */
export function createRestorableStackRepository(db: Queryable) {
  const columns = sql.fragment`
    s.id, o.id as "organizationId", p.id as "projectId", o.name as organization, p.name as project, s.name as stack,
    s.stack_version as "stackVersion", coalesce(c.resource_count, 0) as "resourceCount", s.deleted_checkpoint_id as "checkpointId",
    s.deleted_at as "deletedAt", (extract(epoch from s.deleted_at) * 1000000)::bigint::text as "deletedMicros",
    coalesce(s.deleted_by, '') as "deletedBy", s.restorable_until as "restorableUntil",
    coalesce(s.restorable_until > clock_timestamp(), false) as "isRestorable", s.held_at is not null as "isHeld",
    -- Not "exists", for which Postgres may read all stacks.
    (select n.id from stacks n where n.project_id = s.project_id and n.name = s.name and n.deleted_at is null limit 1) is not null as "isNameTaken"`;
  const joins = sql.fragment`
    stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id
    left join checkpoints c on c.id = s.deleted_checkpoint_id`;
  const of = (organization: string, id: string) =>
    sql.fragment`o.name = ${organization} and s.id = ${id}::uuid and s.deleted_at is not null`;
  return {
    /** The last deleted first. */
    list: (organization: string, before: DeletedStackPosition | null, limit: number) =>
      db.any(sql.rows(RestorableStackRow)`
        /* restorableStacks.list */
        select ${columns} from ${joins}
        where s.restorable_in = (select id from organizations where name = ${organization})
          and s.restorable_until is not null and s.restorable_until > (select clock_timestamp())
          and ${
            before === null
              ? sql.fragment`true`
              : sql.fragment`(s.deleted_at, s.id) < (to_timestamp(0) + ${before.deletedMicros}::bigint * interval '1 microsecond', ${before.id}::uuid)`
          }
        order by s.deleted_at desc, s.id desc limit ${limit}`),

    /** Also finds a stack that can no longer be restored, while its row exists. */
    find: (organization: string, id: string) =>
      db.maybeOne(sql.rows(RestorableStackRow)`
        /* restorableStacks.find */ select ${columns} from ${joins} where ${of(organization, id)}`),

    /** Locks the stack's row until the end of the transaction. */
    lock: (organization: string, id: string) =>
      db.maybeOne(sql.rows(RestorableStackRow)`
        /* restorableStacks.lock */ select ${columns} from ${joins} where ${of(organization, id)} for update of s`),

    /** The last deleted stack with this name that can be restored. */
    findFormer: (projectId: string, name: string) =>
      db.maybeOne(sql.rows(FormerRow)`
        /* restorableStacks.findFormer */
        select s.id, s.tags from stacks s
        where s.project_id = ${projectId} and s.name = ${name} and s.restorable_until is not null and s.restorable_until > clock_timestamp()
        order by s.deleted_at desc limit 1`),

    /** At least a day is left: an older database may have been restored for these stacks, after their period. */
    prolong: () =>
      db.query(sql.nothing`
        /* restorableStacks.prolong */
        update stacks set restorable_until = clock_timestamp() + interval '1 day'
        where deleted_at is not null and restorable_until < clock_timestamp() + interval '1 day'`),

    addToGroupsOf: (formerId: string, stackId: string) =>
      db.query(sql.nothing`
        /* restorableStacks.addToGroupsOf */
        insert into policy_group_stacks (group_id, stack_id)
        select group_id, ${stackId}::uuid from policy_group_stacks where stack_id = ${formerId} on conflict do nothing`),

    /** The stack is locked. Violates `stacks_name_key` if the name is taken. */
    restore: (id: string, projectId: string, name: string) =>
      db.query(sql.nothing`
        /* restorableStacks.restore */
        update stacks set deleted_at = null, restorable_until = null, restorable_in = null, deleted_by = null,
          checkpoint_id = deleted_checkpoint_id, deleted_checkpoint_id = null, project_id = ${projectId}, name = ${name}, updated_at = now()
        where id = ${id}`),

    /** The stack is locked. Deletes its data keys now, and leaves everything else to the sweep. */
    endTime: (id: string) =>
      db.query(sql.nothing`
        /* restorableStacks.endTime */
        with keys as (delete from encryption_keys where stack_id = ${id})
        update stacks set restorable_until = null, restorable_in = null, deleted_checkpoint_id = null where id = ${id}`),

    /** The first of these names that no live stack has. */
    findFreeName: async (projectId: string, names: readonly string[]): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(FreeRow)`
        /* restorableStacks.findFreeName */
        select n.name from unnest(${sql.array([...names], 'text')}) with ordinality as n (name, at)
        where not exists (select 1 from stacks s where s.project_id = ${projectId} and s.name = n.name and s.deleted_at is null)
        order by n.at limit 1`);
      return row?.name ?? null;
    },
  };
}
