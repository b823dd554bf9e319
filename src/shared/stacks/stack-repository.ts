import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable, Timestamp } from '../platform/schema/standard-schema.ts';
import type { StackRef } from './names.ts';

export const StackRow = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  projectId: Type.String(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  tags: Type.String(),
  stackVersion: Type.Integer(),
  checkpointId: Nullable(Type.String()),
  activeUpdateId: Nullable(Type.String()),
  /** An import has brought some of the versions, and more are to come. */
  isImportUnfinished: Type.Boolean(),
});
export type StackRow = Row<typeof StackRow>;

const HeadRow = Type.Object({
  ...StackRow.properties,
  pendingUpdateId: Nullable(Type.String()),
  hasFaults: Type.Boolean(),
});

const StackWithFaultsRow = Type.Object({ ...StackRow.properties, hasFaults: Type.Boolean() });
export type StackWithFaults = Row<typeof StackWithFaultsRow>;

const OperationRow = Type.Object({ kind: Type.String(), author: Type.String(), startedAt: Timestamp });

const IdRow = Type.Object({ id: Type.String() });

export type StackRepository = ReturnType<typeof createStackRepository>;

/** For a stack `s` in `stackJoins`. */
export const stackColumns = sql.fragment`
  s.id, o.id as "organizationId", p.id as "projectId", o.name as organization, p.name as project, s.name as stack,
  s.tags, s.stack_version as "stackVersion", s.checkpoint_id as "checkpointId",
  s.active_update_id as "activeUpdateId", s.import_unfinished as "isImportUnfinished"`;

export const stackJoins = sql.fragment`stacks s join projects p on p.id = s.project_id join organizations o on o.id = p.organization_id`;

/** A deleted stack is invisible at once. Its row stays until all rows that refer to it are deleted. */
export const stackNamed = (ref: StackRef) => sql.fragment`
  o.name = ${ref.organization} and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null`;

/** Counts only faults that no operator has accepted. */
const hasFaults = sql.fragment`exists (
  select 1 from journals j
  where j.stack_id = s.id and j.accepted_at is null and (j.compaction_error is not null or j.compaction_warning is not null)
) as "hasFaults"`;

/**
 * The statement joins the stack's project. If the stack moves to another project while the statement waits, it finds no row, because the
 * old project no longer matches. The statement is then sent again, with the lock already held.
 */
export const lockedWherever = async <S>(lock: () => Promise<S | null>): Promise<S | null> => (await lock()) ?? lock();

export function createStackRepository(db: Queryable) {
  return {
    find: (ref: StackRef) =>
      db.maybeOne(sql.prepared('stacks_find', StackRow)`
        /* stacks.find */ select ${stackColumns} from ${stackJoins}
        where ${stackNamed(ref)}`),

    findWithFaults: (ref: StackRef) =>
      db.maybeOne(sql.prepared('stacks_find_with_faults', StackWithFaultsRow)`
        /* stacks.findWithFaults */ select ${stackColumns}, ${hasFaults} from ${stackJoins} where ${stackNamed(ref)}`),

    /**
     * Includes previews, and stacks that had this name. Reads the active updates of the organization. Unless `facts` are null, counts only
     * stacks on which they permit anything.
     */
    isBusy: (ref: StackRef, facts: object | null) =>
      db.exists(sql.rows(IdRow)`
        /* stacks.isBusy */
        select u.id from organizations o join updates u on u.organization_id = o.id
        where o.name = ${ref.organization} and u.status in ('not started', 'running') and u.expires_at > clock_timestamp()
          and u.stack_id in (
            select s.id from projects p join stacks s on s.project_id = p.id
            where p.organization_id = o.id and p.name = ${ref.project} and s.name = ${ref.stack} and s.deleted_at is null
            union all
            select f.stack_id from former_stack_names f
            where f.organization_id = o.id and f.project_name = ${ref.project} and f.stack_name = ${ref.stack})
          and (${facts === null} or exists (
            select 1 from stacks s join projects p on p.id = s.project_id
            where s.id = u.stack_id and effective_permissions(${facts && JSON.stringify(facts)}::jsonb, o.id, p.name, s.name) <> 0))`),

    /**
     * `pendingUpdateId` is the update with journal entries that are in no checkpoint yet. It is one statement: with two, the entries of a
     * compaction committed in between would appear neither in the journal nor in the head.
     */
    findHead: (ref: StackRef) =>
      db.maybeOne(sql.prepared('stacks_find_head', HeadRow)`
        /* stacks.findHead */ select ${stackColumns},
          (select u.id from journals j join updates u on u.id = j.update_id
           where j.stack_id = s.id and j.compacted_at is null and j.entry_count > j.compacted_entries and j.compaction_error is null
           order by u.stack_version desc limit 1) as "pendingUpdateId",
          ${hasFaults}
        from ${stackJoins}
        where ${stackNamed(ref)}`),

    findById: (id: string) =>
      db.maybeOne(
        sql.rows(StackRow)`/* stacks.findById */ select ${stackColumns} from ${stackJoins} where s.id = ${id}`,
      ),

    listByIds: (ids: readonly string[]) =>
      db.any(sql.rows(StackRow)`
        /* stacks.listByIds */ select ${stackColumns} from ${stackJoins} where s.id = any (${sql.array([...ids], 'uuid')}) and s.deleted_at is null`),

    /** Locks the stack's row until the end of the transaction. */
    lock: (ref: StackRef) =>
      db.maybeOne(sql.rows(StackRow)`
        /* stacks.lock */ select ${stackColumns} from ${stackJoins}
        where ${stackNamed(ref)} for update of s`),

    lockById: (id: string) =>
      lockedWherever(() =>
        db.maybeOne(
          sql.rows(StackRow)`
            /* stacks.lockById */ select ${stackColumns} from ${stackJoins} where s.id = ${id} and s.deleted_at is null for update of s`,
        ),
      ),

    /** Keeps the project until the end of the transaction. Waits for others only while it is being created. */
    ensureProject: async (organizationId: string, name: string): Promise<string> => {
      for (;;) {
        const found = await db.maybeOne(sql.rows(IdRow)`
          /* projects.keep */ select id from projects where organization_id = ${organizationId} and name = ${name} for key share`);
        if (found) return found.id;
        // If two transactions insert the project at once, the later one waits, and then finds it, unless it has been deleted meanwhile.
        const inserted = await db.maybeOne(sql.rows(IdRow)`
          /* projects.insert */ insert into projects (organization_id, name) values (${organizationId}, ${name})
          on conflict on constraint projects_name_key do nothing returning id`);
        if (inserted) return inserted.id;
      }
    },

    projectExists: (organization: string, project: string) =>
      db.exists(sql.rows(IdRow)`
        /* projects.exists */
        select p.id from projects p join organizations o on o.id = p.organization_id
        where o.name = ${organization} and p.name = ${project}`),

    /** Violates `stacks_name_key` if the name is taken. */
    insert: async (stack: { id?: string; projectId: string; name: string; tags: string }): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`
        /* stacks.insert */
        insert into stacks (id, project_id, name, tags)
        values (coalesce(${stack.id ?? null}::uuid, gen_random_uuid()), ${stack.projectId}, ${stack.name}, ${stack.tags}) returning id`);
      return row.id;
    },

    setTags: (id: string, tags: string) =>
      db.query(sql.nothing`/* stacks.setTags */ update stacks set tags = ${tags}, updated_at = now() where id = ${id}`),

    setHead: (id: string, checkpointId: string | null) =>
      db.query(sql.nothing`
        /* stacks.setHead */ update stacks set checkpoint_id = ${checkpointId}, updated_at = now() where id = ${id}`),

    setImportUnfinished: (id: string, isUnfinished: boolean) =>
      db.query(sql.nothing`
        /* stacks.setImportUnfinished */ update stacks set import_unfinished = ${isUnfinished} where id = ${id}`),

    publishVersion: (id: string, stackVersion: number) =>
      db.query(sql.nothing`
        /* stacks.publishVersion */
        update stacks set stack_version = greatest(stack_version, ${stackVersion}), updated_at = now() where id = ${id}`),

    /** Violates `stacks_name_key` if the new name is taken. */
    rename: (id: string, projectId: string, name: string) =>
      db.query(sql.nothing`
        /* stacks.rename */ update stacks set project_id = ${projectId}, name = ${name}, updated_at = now() where id = ${id}`),

    insertFormerName: (stack: StackRow) =>
      db.query(sql.nothing`
        /* formerStackNames.insert */
        insert into former_stack_names (stack_id, organization_id, project_name, stack_name)
        values (${stack.id}, ${stack.organizationId}, ${stack.project}, ${stack.stack}) on conflict do nothing`),

    /** Whether the stack had this name before a rename. */
    hadName: (id: string, { project, stack }: Pick<StackRef, 'project' | 'stack'>) =>
      db.exists(sql.rows(IdRow)`
        /* formerStackNames.has */
        select stack_id as id from former_stack_names
        where stack_id = ${id} and project_name = ${project} and stack_name = ${stack}`),

    /**
     * Hides the stack and frees its name. A sweep deletes its data after `days`, but never while it is under a legal hold. Clears the
     * pointers, so that deleting checkpoints and updates does not touch this row.
     */
    markDeleted: (id: string, { days, by }: { readonly days: number; readonly by: string }) => {
      const ifRestorable = (value: ReturnType<typeof sql.fragment>) =>
        sql.fragment`case when ${days}::integer > 0 or held_at is not null then ${value} end`;
      return db.query(sql.nothing`
        /* stacks.markDeleted */
        update stacks set deleted_at = clock_timestamp(), deleted_by = ${by}, checkpoint_id = null, active_update_id = null,
          deleted_checkpoint_id = ${ifRestorable(sql.fragment`checkpoint_id`)},
          restorable_until = ${ifRestorable(sql.fragment`clock_timestamp() + case when held_at is null then make_interval(hours => 24 * ${days}::integer) else interval '100 years' end`)},
          restorable_in = ${ifRestorable(sql.fragment`(select organization_id from projects where projects.id = project_id)`)}
        where id = ${id}`);
    },

    findCurrentOperation: (stackId: string) =>
      db.maybeOne(sql.rows(OperationRow)`
        /* stacks.findCurrentOperation */
        select u.kind, coalesce(a.login, t.kind || ':' || t.name, '') as author, coalesce(u.started_at, u.created_at) as "startedAt"
        from stacks s join updates u on u.id = s.active_update_id left join users a on a.id = u.requested_by
        left join api_tokens t on t.id = u.token_id
        where s.id = ${stackId}`),
  };
}

/**
 * The stack may be deleted. The lock is a separate statement: statements of `work` see commits during the wait for it, e.g. the start of an
 * update, which does not change that row.
 */
export function onLockedStack<T>(db: Queryable, stackId: string, work: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql.nothing`/* stacks.lockRow */ select 1 from stacks where id = ${stackId} for update`);
    return work(tx);
  });
}
