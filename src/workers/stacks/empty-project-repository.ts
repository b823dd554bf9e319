import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const IdRow = Type.Object({ id: Type.String() });

/** Projects without stacks. Both in one transaction: a stack may be created between a search and the lock. */
export function createEmptyProjectRepository(db: Queryable) {
  return {
    /** Locks up to `limit` of them. Projects in which a stack is being created are left out. */
    lock: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* projects.lockEmpty */
        select p.id from projects p where not exists (select 1 from stacks s where s.project_id = p.id)
        limit ${limit} for update skip locked`);
      return rows.map(({ id }) => id);
    },

    /** Deletes the ones that are still empty. Returns how many. */
    delete: async (ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* projects.deleteEmpty */
        delete from projects p where p.id = any (${sql.array([...ids], 'uuid')})
          and not exists (select 1 from stacks s where s.project_id = p.id)`);
      return rowCount;
    },
  };
}
