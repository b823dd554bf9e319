import { Type } from 'typebox';
import { type Queryable, sql } from '../../shared/platform/db/sql.ts';

const IdRow = Type.Object({ id: Type.String() });

/** Longer than the arrival of a version's archive may take. */
const abandonedDays = 1;

/** Packs and versions that were begun and not published. */
export function createAbandonedPackRepository(db: Queryable) {
  const unused = sql.fragment`not exists (select 1 from policy_pack_versions v where v.pack_id = p.id)`;
  return {
    deleteVersions: async (limit: number): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* policyPacks.deleteAbandoned */
        delete from policy_pack_versions where published_at is null and id = any (array(
          select v.id from policy_pack_versions v
          where v.published_at is null and v.begun_at < now() - make_interval(days => ${abandonedDays}) limit ${limit}))`);
      return rowCount;
    },

    /** Packs with removed versions do not count as empty. */
    lockPacks: async (limit: number): Promise<string[]> => {
      const rows = await db.any(sql.rows(IdRow)`
        /* policyPacks.lockUnused */ select p.id from policy_packs p where ${unused} limit ${limit} for update skip locked`);
      return rows.map(({ id }) => id);
    },

    /** Keeps packs that have versions by now. */
    deletePacks: async (ids: readonly string[]): Promise<number> => {
      const { rowCount } = await db.query(sql.nothing`
        /* policyPacks.deleteUnused */
        delete from policy_packs p where p.id = any (${sql.array([...ids], 'uuid')}) and ${unused}`);
      return rowCount;
    },
  };
}
