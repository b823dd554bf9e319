import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const LevelRow = Type.Object({ source: Type.String(), level: Type.Number() });

/** What one process has seen of a source since its last report. */
export interface FailureReport {
  readonly source: string;
  readonly failures: number;
  /** How much the level drops per second. */
  readonly perSecond: number;
  readonly highest: number;
}

export type FailedLookupRepository = ReturnType<typeof createFailedLookupRepository>;

/** Failed lookups of tokens and leases, counted across all replicas by the clock of the database. */
export function createFailedLookupRepository(db: Queryable) {
  return {
    /** Adds what this process has seen, in one statement. Returns the new level of each source. */
    report: (reports: readonly FailureReport[]) => {
      const column = (name: Exclude<keyof FailureReport, 'source'>) =>
        sql.array(
          reports.map((report) => report[name]),
          'float8',
        );
      const sources = sql.array(
        reports.map(({ source }) => source),
        'text',
      );
      // Always in the same order, so that replicas do not deadlock.
      return db.any(sql.rows(LevelRow)`
        /* failedLookups.report */
        with seen as (
          select * from unnest(${sources}, ${column('failures')}, ${column('perSecond')}, ${column('highest')})
            as s (source, failures, per_second, highest)
        )
        insert into failed_lookups as f (source, level, updated_at)
        select source, least(failures, highest), clock_timestamp() from seen order by source
        on conflict (source) do update set updated_at = excluded.updated_at, level = (
          select least(seen.highest, seen.failures + greatest(0,
            f.level - seen.per_second * greatest(0, extract(epoch from excluded.updated_at - f.updated_at))))
          from seen where seen.source = excluded.source)
        returning source, level`);
    },

    /**
     * Deletes sources without a report for `seconds`, and those that are in the future because the clock was set back.
     */
    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* failedLookups.deleteOlderThan */
        delete from failed_lookups
        where updated_at not between now() - make_interval(secs => ${seconds}) and now() + make_interval(secs => ${seconds})`),
  };
}
