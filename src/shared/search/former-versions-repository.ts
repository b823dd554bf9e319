import { type Queryable, sql } from '../platform/db/sql.ts';
import { replaceChanges } from './indexed-resource-repository.ts';
import { IdRow, type IndexedState, type IndexStep, StateRow, states } from './state-index-repository.ts';

/** Versions older than the index of their stack: their changes are recorded later. */
export function createFormerVersionsRepository(db: Queryable) {
  return {
    /** The first stack after this one with such a version whose changes can be computed. */
    findFillable: async (after: string | null): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* stateIndex.findFillable */
        select i.stack_id as id from state_indexes i join stacks s on s.id = i.stack_id
        where (${after}::uuid is null or i.stack_id > ${after}::uuid) and i.known_from > 0 and s.deleted_at is null and exists (
          select 1 from updates u where u.stack_id = i.stack_id and u.stack_version = i.known_from and u.state_deleted_at is null
            and not exists (
              select 1 from updates b where b.stack_id = u.stack_id and b.stack_version = u.base_stack_version and b.state_deleted_at is not null))
        order by i.stack_id limit 1`);
      return row?.id ?? null;
    },

    /** The newest version whose changes the index does not know. Null if there is none, or they cannot be computed. */
    findUnknown: async (stackId: string): Promise<IndexedState | null> => {
      const state = await db.maybeOne(sql.rows(StateRow)`
        /* stateIndex.findUnknown */
        ${states(stackId)} and u.stack_version = (select known_from from state_indexes where stack_id = ${stackId})`);
      return state?.isEnded && !state.isBaseDeleted ? state : null;
    },

    /** Returns false if another process was first. */
    writeUnknown: async (stackId: string, { changes, resourceCount, state }: IndexStep): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* stateIndex.writeUnknown */
        update state_indexes i set known_from = ${state.baseVersion}
        where stack_id = ${stackId} and known_from = ${state.version}
          and exists (select 1 from stacks s where s.id = i.stack_id and s.deleted_at is null)
        returning stack_id as id`);
      if (row === null || changes === null) return false;
      await replaceChanges(db, stackId, { version: state.version, resourceCount, changes });
      return true;
    },
  };
}
