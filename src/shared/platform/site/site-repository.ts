import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../db/sql.ts';
import { isHiddenFunction } from '../db/sqlstate.ts';
import { Nullable, Timestamp } from '../schema/standard-schema.ts';

const SiteRow = Type.Object({
  installation: Type.String(),
  term: Type.Integer(),
  id: Nullable(Type.String()),
  fencedSince: Nullable(Timestamp),
});
export type Site = Row<typeof SiteRow>;

const PostgresRow = Type.Object({
  isStandby: Type.Boolean(),
  /** Whether a standby is connected to its primary; null if the server hides this. */
  isReceiving: Nullable(Type.Boolean()),
  /** Age of the newest replayed transaction; 0 if everything received is replayed. Null on a primary, or if the server hides it. */
  replaySeconds: Nullable(Type.Number()),
});

const StandbyRow = Type.Object({
  name: Type.String(),
  state: Nullable(Type.String()),
  /** `sync` means that a commit waits for this standby. */
  sync: Nullable(Type.String()),
  /** Bytes of the log that the standby has not replayed; null if the server hides them. */
  lagBytes: Nullable(Type.Integer()),
});

type Fragment = ReturnType<typeof sql.fragment>;
const standbyProgress = sql.fragment`
  exists (select 1 from pg_stat_wal_receiver) as "isReceiving",
  case
    when not pg_is_in_recovery() then null
    when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
    else coalesce(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8, 0)
  end as "replaySeconds"`;
const unknownProgress = sql.fragment`null::boolean as "isReceiving", null::float8 as "replaySeconds"`;
const standbyLagBytes = sql.fragment`
  case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint end`;

/** Reads again without the part that needs functions hidden by the server. */
async function withoutHidden<T>(read: (part?: Fragment) => Promise<T>, unknown: Fragment): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isHiddenFunction(error)) return read(unknown);
    throw error;
  }
}

/** The site of the database, and the replication of Postgres. */
export function createSiteRepository(db: Queryable) {
  const readPostgres = (progress: Fragment = standbyProgress) =>
    db.one(sql.rows(PostgresRow)`
      /* site.postgres */
      select pg_is_in_recovery() as "isStandby", ${progress}`);
  const listStandbys = (lagBytes: Fragment = standbyLagBytes) =>
    db.any(sql.rows(StandbyRow)`
      /* site.listStandbys */
      select coalesce(application_name, '') as name, state, sync_state as sync, ${lagBytes} as "lagBytes"
      from pg_stat_replication order by 1`);
  return {
    read: (): Promise<Site> =>
      db.one(sql.rows(SiteRow)`
        /* site.read */
        select id as installation, site_term as term, site_id as id, fenced_since as "fencedSince" from installation`),

    /** Returns false if the database belongs to a later site. */
    claim: async ({ id, term }: { readonly term: number; readonly id: string }): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* site.claim */
        update installation set site_term = ${term}, site_id = ${id}::uuid, fenced_since = null where site_term < ${term}`);
      return rowCount > 0;
    },

    /**
     * Records that another site has replaced this one. Returns false if this is already recorded, or if the database has another site by
     * now.
     */
    fence: async ({ id, term }: Site): Promise<boolean> => {
      const { rowCount } = await db.query(sql.nothing`
        /* site.fence */
        update installation set fenced_since = clock_timestamp(),
          outgoing_held_since = coalesce(outgoing_held_since, clock_timestamp())
        where site_term = ${term} and site_id is not distinct from ${id}::uuid and fenced_since is null`);
      return rowCount > 0;
    },

    postgres: () => withoutHidden(readPostgres, unknownProgress),
    listStandbys: () => withoutHidden(listStandbys, sql.fragment`null::bigint`),

    /** Returns false if the standby does not become a primary within a minute. */
    promote: async (): Promise<boolean> => {
      const { done } = await db.one(sql.rows(Type.Object({ done: Type.Boolean() }))`
        /* site.promote */ select pg_promote(true, 60) as done`);
      return done;
    },
  };
}
