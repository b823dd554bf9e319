import { Type } from 'typebox';
import { type Queryable, sql } from '../platform/db/sql.ts';

const RateCounterRow = Type.Object({ source: Type.String(), level: Type.Number() });

/** Failures or requests since the last report of one process. */
export interface RateCounterReport {
  readonly source: string;
  readonly events: number;
  /** The counter decreases by this much per second. */
  readonly perSecond: number;
  readonly highest: number;
}

export type RateCounterRepository = ReturnType<typeof createRateCounterRepository>;

const tables = {
  failedLookups: { name: sql.fragment`failed_lookups`, comment: sql.fragment`/* failedLookups.report */` },
  requests: { name: sql.fragment`rate_counters`, comment: sql.fragment`/* rateCounters.report */` },
};

/** Shared by all replicas, by the clock of the database. */
export function createRateCounterRepository(db: Queryable, of: keyof typeof tables) {
  const table = tables[of];
  return {
    /** Takes one statement. Returns the new counter of each source. */
    report: (reports: readonly RateCounterReport[]) => {
      const column = (name: Exclude<keyof RateCounterReport, 'source'>) =>
        sql.array(
          reports.map((report) => report[name]),
          'float8',
        );
      const sources = sql.array(
        reports.map(({ source }) => source),
        'text',
      );
      // The order is fixed, so that replicas do not deadlock.
      return db.any(sql.rows(RateCounterRow)`
        ${table.comment}
        with seen as (
          select * from unnest(${sources}, ${column('events')}, ${column('perSecond')}, ${column('highest')})
            as s (source, events, per_second, highest)
        )
        insert into ${table.name} as f (source, level, updated_at)
        select source, least(events, highest), clock_timestamp() from seen order by source
        on conflict (source) do update set updated_at = excluded.updated_at, level = (
          select least(seen.highest, seen.events + greatest(0,
            f.level - seen.per_second * greatest(0, extract(epoch from excluded.updated_at - f.updated_at))))
          from seen where seen.source = excluded.source)
        returning source, level`);
    },

    /** Also deletes sources in the future because the clock was set back. */
    deleteOlderThan: (seconds: number) =>
      db.query(sql.nothing`
        /* rateCounters.deleteOlderThan */
        delete from ${table.name}
        where updated_at not between now() - make_interval(secs => ${seconds}) and now() + make_interval(secs => ${seconds})`),
  };
}
