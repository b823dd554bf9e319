import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Nullable } from '../platform/schema/standard-schema.ts';
import { type Batches, replaceChanges, type VersionChanges, writeResources } from './indexed-resource-repository.ts';
import type { ResourceFacts } from './resource-facts.ts';
import { shortHashLength } from './resource-key.ts';

const IndexRow = Type.Object({
  edition: Type.Integer(),
  /** Null before the first write, and if all rows must be rewritten. */
  version: Nullable(Type.Integer()),
  checkpointId: Nullable(Type.String()),
  isEnded: Type.Boolean(),
  resourceCount: Type.Integer(),
  organization: Type.String(),
  project: Type.String(),
  stack: Type.String(),
});
export type IndexRow = Row<typeof IndexRow>;

export const StateRow = Type.Object({
  version: Type.Integer(),
  baseVersion: Type.Integer(),
  baseCheckpointId: Nullable(Type.String()),
  checkpointId: Nullable(Type.String()),
  isEnded: Type.Boolean(),
  /** Retention has deleted the previous state, so the changes of this one are unknown. */
  isBaseDeleted: Type.Boolean(),
});
/** Of a version, or of the head of a stack without versions (version 0). */
export type IndexedState = Row<typeof StateRow>;

const TextRow = Type.Object({ text: Type.String() });
export const IdRow = Type.Object({ id: Type.String() });

/** A step from one state to the next. */
export interface IndexStep {
  readonly state: IndexedState;
  readonly resourceCount: number;
  readonly skipped: number;
  readonly written: Batches<ResourceFacts>;
  readonly removed: readonly string[];
  /** Null while the version runs. */
  readonly changes: VersionChanges | null;
}

export type StateIndexRepository = ReturnType<typeof createStateIndexRepository>;

export function createStateIndexRepository(db: Queryable) {
  /** Only for a live stack. */
  const find = (stackId: string): Promise<IndexRow | null> =>
    db.maybeOne(sql.prepared('state_index_read', IndexRow)`
      /* stateIndex.read */
      select i.edition, i.version, i.checkpoint_id as "checkpointId", i.is_ended as "isEnded", i.resource_count as "resourceCount",
        o.name as organization, p.name as project, s.name as stack
      from state_indexes i join stacks s on s.id = i.stack_id join projects p on p.id = s.project_id
        join organizations o on o.id = p.organization_id
      where i.stack_id = ${stackId} and s.deleted_at is null`);

  return {
    /** The state that the index shows; null if the stack is gone. */
    open: async (stackId: string): Promise<IndexRow | null> => {
      await db.query(sql.command('state_index_open')`
        /* stateIndex.open */
        insert into state_indexes (stack_id) select id from stacks where id = ${stackId} and deleted_at is null
          and not exists (select 1 from state_indexes i where i.stack_id = stacks.id)
        on conflict do nothing`);
      return find(stackId);
    },

    find,

    /** Oldest first. */
    listStates: (stackId: string, fromVersion: number, limit: number) =>
      db.any(sql.prepared('state_index_list_states', StateRow)`
        /* stateIndex.listStates */
        ${states(stackId)} and u.stack_version >= ${fromVersion} order by u.stack_version limit ${limit}`),

    /** Null if the stack is gone. */
    findHead: async (stackId: string): Promise<IndexedState | null> => {
      const newest = await db.maybeOne(sql.prepared('state_index_find_newest', StateRow)`
        /* stateIndex.findNewest */ ${states(stackId)} order by u.stack_version desc limit 1`);
      return (
        newest ??
        db.maybeOne(sql.rows(StateRow)`
          /* stateIndex.findHead */
          select 0 as version, 0 as "baseVersion", checkpoint_id as "baseCheckpointId", checkpoint_id as "checkpointId", true as "isEnded",
            false as "isBaseDeleted"
          from stacks where id = ${stackId} and deleted_at is null`)
      );
    },

    /** Keyed by resource key. */
    readDigests: async (stackId: string): Promise<Map<string, string>> => {
      const row = await db.one(sql.prepared('state_index_read_digests', TextRow)`
        /* stateIndex.readDigests */
        select coalesce(string_agg(key || digest, ''), '') as text from stack_resources where stack_id = ${stackId}`);
      const digests = new Map<string, string>();
      for (let at = 0; at < row.text.length; at += 2 * shortHashLength) {
        const middle = at + shortHashLength;
        digests.set(row.text.slice(at, middle), row.text.slice(middle, middle + shortHashLength));
      }
      return digests;
    },

    /** All rows are then rewritten. `keepsChanges` keeps the changes of versions, and `keepsKnown` their marks as known. */
    reset: (
      stackId: string,
      { keepsChanges, keepsKnown }: { readonly keepsChanges: boolean; readonly keepsKnown: boolean },
    ) =>
      db.query(sql.nothing`
        /* stateIndex.reset */
        with reset as (
          update state_indexes i set edition = edition + 1, version = null, checkpoint_id = null, is_ended = false,
            known_from = case when ${keepsKnown} then known_from end,
            referring_in = (select p.organization_id from stacks s join projects p on p.id = s.project_id where s.id = i.stack_id and exists (
              select 1 from stack_resources r where r.stack_id = i.stack_id and r.reads is not null))
          where stack_id = ${stackId} returning stack_id
        )
        delete from version_changes v using reset r where v.stack_id = r.stack_id and not ${keepsChanges}`),

    /** Returns false and writes nothing if the stack is gone, or if another process has written since the index was read. */
    write: async (
      stackId: string,
      { edition, version }: Pick<IndexRow, 'edition' | 'version'>,
      step: IndexStep,
    ): Promise<boolean> => {
      if (!(await fence(stackId, edition, step))) return false;
      if (version === null)
        await db.query(sql.command('state_index_delete_all')`
          /* stateIndex.deleteAll */ delete from stack_resources where stack_id = ${stackId}`);
      await writeResources(db, stackId, step);
      const { changes, resourceCount, state } = step;
      if (changes !== null) await replaceChanges(db, stackId, { version: state.version, resourceCount, changes });
      return true;
    },
  };

  /** Locks the row of the index until the end of the transaction. Only reads the row of the stack, which commits lock. */
  async function fence(
    stackId: string,
    edition: number,
    { resourceCount, skipped, state }: IndexStep,
  ): Promise<boolean> {
    const row = await db.maybeOne(sql.prepared('state_index_fence', IdRow)`
      /* stateIndex.fence */
      update state_indexes i set edition = edition + 1, version = ${state.version}, checkpoint_id = ${state.checkpointId}::uuid,
        is_ended = ${state.isEnded}, resource_count = ${resourceCount}, skipped = ${skipped},
        known_from = coalesce(known_from, ${state.baseVersion}::integer), indexed_at = clock_timestamp()
      where stack_id = ${stackId} and edition = ${edition}
        and exists (select 1 from stacks s where s.id = i.stack_id and s.deleted_at is null)
      returning stack_id as id`);
    return row !== null;
  }
}

/** A journal that is not compacted yet belongs to a version that has not ended. */
export const states = (stackId: string) => sql.fragment`
  select u.stack_version as version, u.base_stack_version as "baseVersion", u.base_checkpoint_id as "baseCheckpointId",
    u.checkpoint_id as "checkpointId",
    u.status not in ('not started', 'running') and coalesce(j.entry_count <= j.compacted_entries or j.compaction_error is not null, true) as "isEnded",
    exists (select 1 from updates b where b.stack_id = u.stack_id and b.stack_version = u.base_stack_version and b.state_deleted_at is not null)
      as "isBaseDeleted"
  from updates u left join journals j on j.update_id = u.id join stacks s on s.id = u.stack_id
  where u.stack_id = ${stackId} and u.stack_version is not null and u.exclusive and not u.dry_run and s.deleted_at is null
    and u.state_deleted_at is null`;
