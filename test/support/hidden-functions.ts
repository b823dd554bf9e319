/** Managed servers, above all those whose storage is not Postgres's own, hide these functions about files and the write-ahead log, or refuse them. */
export const hiddenFunctions: readonly string[] = [
  'pg_control_system()',
  'pg_control_checkpoint()',
  'pg_walfile_name(pg_lsn)',
  'pg_current_wal_lsn()',
  'pg_current_wal_flush_lsn()',
  'pg_current_wal_insert_lsn()',
  'pg_last_wal_replay_lsn()',
  'pg_last_wal_receive_lsn()',
  'pg_last_xact_replay_timestamp()',
  'pg_stat_get_wal_receiver()',
];
