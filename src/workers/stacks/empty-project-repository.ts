import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const IdRow = Type.Object({ id: Type.String() });

/** Projects that may have no stacks. Use one transaction, because a stack may be created between a search and the lock. */
export function createEmptyProjectRepository(db: Queryable) {
  return {
    /** Projects that are new, or that a stack has left. Skips projects in which a stack is being created. */
    lock: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* projects.lockMarked */
        select id from projects where may_be_empty limit ${limit} for update skip locked`);
      return rows.map(({ id }) => id);
    },

    /** Removes the mark of projects that have stacks. */
    delete: async (ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* projects.deleteEmpty */
        delete from projects p where p.id = any (${sql.array([...ids], 'uuid')})
          and not exists (select 1 from stacks s where s.project_id = p.id)`);
      await db.query(sql.nothing`
        /* projects.unmark */ update projects set may_be_empty = false where id = any (${sql.array([...ids], 'uuid')})`);
      return rowCount;
    },
  };
}
