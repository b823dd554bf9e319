import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../db/sql.ts';
import { Timestamp } from '../schema/standard-schema.ts';

const ProcessRow = Type.Object({
  id: Type.String(),
  role: Type.String(),
  version: Type.String(),
  host: Type.String(),
  pid: Type.Integer(),
  startedAt: Timestamp,
  seenAt: Timestamp,
  /** The process has missed two heartbeats. */
  isLate: Type.Boolean(),
  rssBytes: Type.Number(),
  /** The share of one core. */
  cpu: Type.Number(),
  /** How long the event loop was blocked at most. */
  loopMs: Type.Number(),
});
export type ProcessRow = Row<typeof ProcessRow>;

export interface Beat {
  readonly id: string;
  readonly role: string;
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly upSeconds: number;
  readonly rssBytes: number;
  readonly cpu: number;
  readonly loopMs: number;
}

export const beatSeconds = 10;
/** A process without a report for this time is forgotten. */
const keptSeconds = 3_600;

/** By the clock of the database. */
export function createProcessRepository(db: Queryable) {
  return {
    beat: ({ cpu, host, id, loopMs, pid, role, rssBytes, upSeconds, version }: Beat) =>
      db.query(sql.nothing`
        /* processes.beat */
        insert into processes (id, role, version, host, pid, started_at, seen_at, rss_bytes, cpu, loop_ms)
        values (${id}, ${role}, ${version}, ${host}, ${pid}, clock_timestamp() - make_interval(secs => ${upSeconds}), clock_timestamp(),
          ${rssBytes}, ${cpu}, ${loopMs})
        on conflict (id) do update set seen_at = excluded.seen_at, rss_bytes = excluded.rss_bytes, cpu = excluded.cpu,
          loop_ms = excluded.loop_ms`),

    remove: (id: string) => db.query(sql.nothing`/* processes.remove */ delete from processes where id = ${id}`),

    /** A heartbeat in the future means that the clock was set back. A living process reports again. */
    removeGone: () =>
      db.query(sql.nothing`
        /* processes.removeGone */
        delete from processes where seen_at < clock_timestamp() - make_interval(secs => ${keptSeconds})
          or seen_at > clock_timestamp() + make_interval(secs => ${beatSeconds})`),

    list: (limit: number) =>
      db.any(sql.rows(ProcessRow)`
        /* processes.list */
        select id, role, version, host, pid, started_at as "startedAt", seen_at as "seenAt", rss_bytes::float8 as "rssBytes", cpu,
          loop_ms as "loopMs", seen_at < clock_timestamp() - make_interval(secs => ${2.5 * beatSeconds}) as "isLate"
        from processes order by role, started_at, id limit ${limit}`),
  };
}
