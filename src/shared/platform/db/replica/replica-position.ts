import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../sql.ts';

/** Positions in the write-ahead log are bytes from its beginning. */
const PrimaryPosition = Type.Object({
  systemId: Type.String(),
  /** Hex digits. Each promotion of a standby begins another timeline. */
  timeline: Type.String(),
  /** Every acknowledged write lies before this position. */
  flushed: Type.Integer(),
});
export type PrimaryPosition = Row<typeof PrimaryPosition>;

const ReplicaPosition = Type.Object({
  systemId: Type.String(),
  timeline: Type.String(),
  isStandby: Type.Boolean(),
  replayed: Type.Integer(),
  /** Differs for each server and each of its starts. */
  server: Type.String(),
});
export type ReplicaPosition = Row<typeof ReplicaPosition>;

/** Why a server's data cannot be compared with the primary's. */
export type Unfit = 'not a standby' | 'another cluster' | 'another timeline';

/**
 * A commit is flushed before it is visible or acknowledged. The name of the current log file contains the current timeline; the control
 * file gets it only at the next checkpoint.
 */
export function readPrimaryPosition(primary: Queryable): Promise<PrimaryPosition> {
  return primary.one(sql.prepared('replica_primary_position', PrimaryPosition)`
    /* replica.primaryPosition */
    select (select system_identifier::text from pg_control_system()) as "systemId",
      left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) as timeline,
      pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as flushed`);
}

/** The timeline is that of the standby's last restart point, and may be older. */
export function readReplicaPosition(replica: Queryable): Promise<ReplicaPosition> {
  return replica.one(sql.prepared('replica_position', ReplicaPosition)`
    /* replica.position */
    select (select system_identifier::text from pg_control_system()) as "systemId",
      (select lpad(upper(to_hex(timeline_id)), 8, '0') from pg_control_checkpoint()) as timeline,
      pg_is_in_recovery() as "isStandby",
      coalesce(pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), 0)::bigint as replayed,
      pg_postmaster_start_time()::text as server`);
}

/**
 * Returns null if the positions may be compared. A replica on another timeline may be ahead and still lack data of the primary, e.g. a
 * standby that had received more than the promoted one.
 */
export function unfitness(replica: ReplicaPosition, primary: PrimaryPosition): Unfit | null {
  if (replica.systemId !== primary.systemId) return 'another cluster';
  if (!replica.isStandby) return 'not a standby';
  return replica.timeline === primary.timeline ? null : 'another timeline';
}
